/** Commands that begin sessions and show them. */
import { DATA, OUT, SESSION, MODES, EFFORTS, PLACES, type Command, type Run } from '../command.ts'

export const SESSIONS = {
  new: {
    group: 'Sessions',
    what: 'start a session',
    args: [{ name: 'PROMPT', rest: true }],
    flags: {
      ...OUT,
      workspace: {
        type: 'string',
        value: 'DIR',
        values: 'folder',
        what: 'folder to work on, `virtual` (files in the session) or `scratch`; default: this one',
      },
      mode: {
        type: 'string',
        value: 'MODE',
        values: MODES,
        what: 'what the agent may do unasked: plan, ask (default), edit, full',
      },
      model: { type: 'string', value: 'MODEL', values: 'model', what: 'the model; default: of the runner' },
      effort: {
        type: 'string',
        value: 'EFFORT',
        values: EFFORTS,
        what: 'how much the model thinks: low, medium, high',
      },
      place: {
        type: 'string',
        value: 'PLACE',
        values: PLACES,
        what: 'laptop: here first, elsewhere when it is away (default); cloud: only in a pool; pinned: only on one runner',
      },
      on: {
        type: 'string',
        value: 'NAME',
        values: 'place',
        what: 'the runner, or with --place cloud the pool',
      },
      'in-place': { type: 'boolean', what: 'work in the folder itself, not in a work tree of its own' },
      agent: {
        type: 'string',
        value: 'FILE',
        values: 'file',
        what: 'the agent: a built-in one (coder) or a TypeScript file',
      },
    },
    more: 'Ends when a runner has begun it, or with the reason why it can not. In a folder of a repository that a runner serves it\nworks on all of the repository.\nA model that is not known here is warned of, and asked for all the same.\n--json: {"sid", "runner", "started"}, and {"warnings": […]}.\n\n  baton new --workspace . --mode edit "Why is the build slow?"',
    load: (): Promise<Run> => import('../new.ts').then(({ newSession }) => newSession),
  },
  ls: {
    group: 'Sessions',
    what: 'list sessions',
    flags: {
      ...OUT,
      watch: { type: 'boolean', short: 'w', what: 'keep the list up to date' },
      all: { type: 'boolean', short: 'a', what: 'those that were dismissed here, too' },
    },
    more: '--json: an array of {"sid", "status", "runner", "title", "seq", "pending", "changed_at"},\n{"trouble": {"code", "message"}} when it failed, or rests because its last turn did, and {"dismissed": true};\nwith --watch one array a line, at each change. With --json those that were dismissed are there, too.',
    load: (): Promise<Run> => import('../list.ts').then(({ listSessions }) => listSessions),
  },
  dismiss: {
    group: 'Sessions',
    what: 'put ended sessions out of the list of this machine',
    args: [{ name: 'SESSION', values: 'session', optional: true, rest: true }],
    flags: {
      ...OUT,
      all: { type: 'boolean', what: 'all that have ended' },
      undo: { type: 'boolean', what: 'put them back' },
    },
    more: 'Without arguments it lists them. They stay in the account: baton ls --all shows them, baton log reads them.\n--json: [{"sid", "status", "title"}].',
    load: (): Promise<Run> => import('../dismiss.ts').then(({ dismissSessions }) => dismissSessions),
  },
  attach: {
    group: 'Sessions',
    what: 'see a session and work with it, live, as on the phone',
    args: SESSION,
    flags: {
      ...DATA,
      plain: { type: 'boolean', what: 'lines only, for terminals and programs that are no screen' },
      json: { type: 'boolean', what: 'print what happens as JSON lines' },
    },
    more: 'Without a terminal on both ends, or with TERM=dumb, it is --plain. A line that is typed is a prompt.\n--json: one line a journal entry, opened: {"kind", "seq", "at", "body"}.',
    keepsOn: true,
    load: (): Promise<Run> => import('../attach.ts').then(({ attach }) => attach),
  },
  log: {
    group: 'Sessions',
    what: 'what was said and done, and what waits for you',
    args: SESSION,
    flags: {
      ...OUT,
      full: { type: 'boolean', what: 'cut nothing: whole output, whole calls, thoughts' },
      entries: { type: 'boolean', what: 'with --json: the journal itself' },
    },
    more: '--json: the transcript as an array.',
    load: (): Promise<Run> => import('../log.ts').then(({ log }) => log),
  },
  docs: {
    group: 'Sessions',
    what: 'the documents of a session, or one of them',
    args: [
      { name: 'SESSION', values: 'session', optional: true },
      { name: 'NAME', values: 'document', optional: true },
    ],
    flags: {
      ...OUT,
      set: { type: 'string', value: 'JSON', what: 'change it to this value; - reads it from standard input' },
    },
    more: '--json: an array of {"name", "version", "value"}, or that of the one named.',
    load: (): Promise<Run> => import('../steer.ts').then(({ docs }) => docs),
  },
  trace: {
    group: 'Sessions',
    what: 'what it did when, how long that took and what it cost, as a waterfall',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "spans": [{"kind", "name", "detail", "start_ms", "end_ms", "end", "usage", …}], "totals"}.',
    load: (): Promise<Run> => import('../trace.ts').then((module) => module.trace),
  },
} as const satisfies Record<string, Command>
