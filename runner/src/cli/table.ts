/**
 * Every command with its arguments and flags: the one truth from which command lines are parsed and from which `--help` and shell
 * completion are made. Data only, and commands are loaded when they are called, so that all three are quick.
 */
export type Run = (args: string[]) => Promise<number>

/** What may stand at a place of the command line. A list: these words. */
export type Values =
  | 'session'
  | 'runner'
  | 'place'
  | 'pool'
  | 'model'
  | 'document'
  | 'command'
  | 'file'
  | 'folder'
  | readonly string[]

export interface Flag {
  type: 'string' | 'boolean'
  what: string
  short?: string
  multiple?: boolean
  /** The name of its value in help. */
  value?: string
  values?: Values
  /** Not shown in help or completion. */
  hidden?: boolean
}

export interface Argument {
  name: string
  values?: Values
  optional?: boolean
  /** All remaining words. */
  rest?: boolean
}

export interface Command {
  group: 'Start' | 'Sessions' | 'Steer' | 'Move' | 'Machine' | 'Guest'
  what: string
  args?: readonly Argument[]
  flags: Readonly<Record<string, Flag>>
  /** More lines for `baton help COMMAND`: what `--json` gives, examples. */
  more?: string
  /** It works on when nobody reads its output any more, or sees to that itself. */
  keepsOn?: true
  load: () => Promise<Run>
}

export const MODES = ['plan', 'ask', 'edit', 'full'] as const
export const EFFORTS = ['low', 'medium', 'high'] as const
/** The modes that a session may go on in once its plan is approved, the default first. */
export const AFTER_PLAN = ['ask', 'edit'] as const
export const PLACES = ['laptop', 'cloud', 'pinned'] as const
export const SHELLS = ['bash', 'zsh', 'fish'] as const

const DATA = {
  data: {
    type: 'string',
    value: 'DIR',
    values: 'folder',
    what: 'data folder; default $BATON_DATA, else ~/.baton',
  },
} as const
const OUT = {
  ...DATA,
  json: { type: 'boolean', what: 'print JSON for programs' },
} as const

const METRICS = {
  type: 'string',
  value: '[HOST:]PORT',
  what: 'numbers for Prometheus at /metrics; without HOST for this machine only',
} as const

const EFFECT = {
  type: 'string',
  multiple: true,
  value: 'N',
  what: 'the call with this number, as baton approve lists them',
} as const

const SESSION = [{ name: 'SESSION', values: 'session', optional: true }] as const

export const TABLE = {
  up: {
    group: 'Start',
    what: 'relay, runner and app on this machine, and a link for the phone',
    flags: {
      ...OUT,
      port: { type: 'string', value: 'N', what: 'port of the relay; default 7788, 0: any free one' },
      lan: { type: 'boolean', what: 'reachable from the local network' },
      host: { type: 'string', value: 'H', what: 'address to listen on' },
      workspace: {
        type: 'string',
        value: 'DIR',
        values: 'folder',
        what: 'folder that the runner serves; default: this one',
      },
      name: { type: 'string', value: 'NAME', what: 'name of the runner' },
    },
    more: '--json: one line when it is up: {"origin", "link", "workspace", "model"}.',
    keepsOn: true,
    load: (): Promise<Run> => import('./up.ts').then(({ up }) => up),
  },
  relay: {
    group: 'Start',
    what: 'the relay alone',
    flags: {
      ...OUT,
      port: { type: 'string', value: 'N', what: 'port; default 7788, 0: any free one' },
      host: { type: 'string', value: 'H', what: 'address to listen on; default 127.0.0.1' },
      client: { type: 'string', value: 'DIR', values: 'folder', what: 'the built app', hidden: true },
      accounts: { type: 'string', value: 'N', what: 'how many accounts may ever sign in; default 1' },
      sessions: { type: 'string', value: 'N', what: 'how many an account may have; default 1000' },
      storage: { type: 'string', value: 'SIZE', what: 'how much it may store: 512M, 8G, 2T; default 8G' },
      frames: { type: 'string', value: 'N', what: 'frames a second from one connection; default 500' },
      connects: { type: 'string', value: 'N', what: 'new connections a second from one address; default 5' },
      pairings: { type: 'string', value: 'N', what: 'pairings a minute from one address; default 20' },
      log: {
        type: 'string',
        value: 'LEVEL',
        values: ['debug', 'info', 'warn', 'error'],
        what: 'how much is logged; default warn',
      },
      metrics: METRICS,
      'hold-health': { type: 'boolean', what: 'health waits for the parent process', hidden: true },
    },
    more: '--json: one line when it listens: {"origin"}; its log goes to standard error.\nLimits may also stand in the environment, for baton up as well: BATON_RELAY_SESSIONS, BATON_RELAY_STORAGE …',
    keepsOn: true,
    load: (): Promise<Run> => import('./relay.ts').then(({ relay }) => relay),
  },
  runner: {
    group: 'Start',
    what: 'one more runner: holds sessions on this machine until it is told to end',
    flags: {
      ...OUT,
      name: { type: 'string', value: 'NAME', what: 'its name; default: of this machine' },
      pool: { type: 'string', multiple: true, value: 'LABEL', values: 'pool', what: 'a pool that it serves' },
      capacity: { type: 'string', value: 'N', what: 'sessions at once; default 4, in a pool 8' },
      metrics: METRICS,
      workspace: {
        type: 'string',
        multiple: true,
        value: 'DIR',
        values: 'folder',
        what: 'a folder that it serves',
      },
      sandbox: { type: 'boolean', what: 'run every command in a sandbox (Linux, bubblewrap), or refuse it' },
      join: { type: 'string', value: 'LINK', what: 'a pairing link, see: baton pair' },
      relay: { type: 'string', value: 'URL', what: 'address of the relay' },
    },
    more: '--json: the log as JSON lines, on standard error: {"at", "runner", "message"}.',
    keepsOn: true,
    load: (): Promise<Run> => import('./runner.ts').then(({ runner }) => runner),
  },
  pair: {
    group: 'Start',
    what: 'a link, as text and QR code, by which one more device joins',
    flags: {
      ...OUT,
      origin: { type: 'string', value: 'URL', what: 'how the new device reaches the relay' },
    },
    more: '--json: {"link"}.',
    load: (): Promise<Run> => import('./pair.ts').then(({ pair }) => pair),
  },
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
    more: 'Ends when a runner has begun it, or with the reason why it can not. In a folder of a repository that a runner serves it\nworks on all of the repository.\n--json: {"sid", "runner", "started"}.\n\n  baton new --workspace . --mode edit "Why is the build slow?"',
    load: (): Promise<Run> => import('./new.ts').then(({ newSession }) => newSession),
  },
  ls: {
    group: 'Sessions',
    what: 'list sessions',
    flags: { ...OUT, watch: { type: 'boolean', short: 'w', what: 'keep the list up to date' } },
    more: '--json: an array of {"sid", "status", "runner", "title", "seq", "pending", "changed_at"},\nand {"trouble": {"code", "message"}} when it rests because its last turn failed;\nwith --watch one array a line, at each change.',
    load: (): Promise<Run> => import('./list.ts').then(({ listSessions }) => listSessions),
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
    load: (): Promise<Run> => import('./attach.ts').then(({ attach }) => attach),
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
    load: (): Promise<Run> => import('./log.ts').then(({ log }) => log),
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
    load: (): Promise<Run> => import('./steer.ts').then(({ docs }) => docs),
  },
  prompt: {
    group: 'Steer',
    what: 'send a prompt',
    args: [
      { name: 'SESSION', values: 'session' },
      { name: 'TEXT', rest: true },
    ],
    flags: {
      ...OUT,
      steer: { type: 'boolean', what: 'for the turn under way; else it waits until the turn is over' },
      id: { type: 'string', value: 'ID', what: 'id of the command, to send it again without doubling it' },
    },
    more: '--json: {"sid", "id"}.',
    load: (): Promise<Run> => import('./steer.ts').then(({ prompt }) => prompt),
  },
  approve: {
    group: 'Steer',
    what: 'see what the session waits for, and approve it',
    args: SESSION,
    flags: {
      ...OUT,
      effect: EFFECT,
      yes: { type: 'boolean', short: 'y', what: 'all that waits, without asking' },
      note: { type: 'string', value: 'TEXT', what: 'a word for the agent' },
      always: { type: 'boolean', what: 'also allow calls like these from now on, in this session' },
      mode: {
        type: 'string',
        value: 'MODE',
        values: AFTER_PLAN,
        what: 'of a plan: what the agent may do then, ask (default) or edit',
      },
    },
    more: 'On a terminal it shows each call whole and asks. Elsewhere, without --effect or --yes, it lists them and ends with 2.\n--json: the calls that were decided: [{"effect", "name", "input", "digest", "approved", …}];\nwithout --effect or --yes {"error", "waits": [{"effect", "name", "input", "digest"}]}.',
    load: (): Promise<Run> => import('./decide.ts').then((module) => module.approve),
  },
  deny: {
    group: 'Steer',
    what: 'deny what the session waits for',
    args: SESSION,
    flags: {
      ...OUT,
      effect: EFFECT,
      note: { type: 'string', value: 'TEXT', what: 'why, for the agent' },
    },
    more: 'Without --effect all of it.\n--json: the calls that were decided.',
    load: (): Promise<Run> => import('./decide.ts').then((module) => module.deny),
  },
  stop: {
    group: 'Steer',
    what: 'stop what runs',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "id"}.',
    load: (): Promise<Run> => import('./steer.ts').then(({ stop }) => stop),
  },
  mode: {
    group: 'Steer',
    what: 'change what the agent may do unasked; without MODE: show it',
    args: [
      { name: 'SESSION', values: 'session' },
      { name: 'MODE', values: MODES, optional: true },
    ],
    flags: OUT,
    more: '--json: {"sid", "mode"}.',
    load: (): Promise<Run> => import('./steer.ts').then(({ mode }) => mode),
  },
  set: {
    group: 'Steer',
    what: 'change model or effort from the next request on',
    args: SESSION,
    flags: {
      ...OUT,
      model: { type: 'string', value: 'MODEL', values: 'model', what: 'the model' },
      effort: { type: 'string', value: 'EFFORT', values: EFFORTS, what: 'how much it thinks' },
    },
    more: '--json: {"sid", "id", "settings"}.',
    load: (): Promise<Run> => import('./steer.ts').then(({ set }) => set),
  },
  compact: {
    group: 'Steer',
    what: 'compact the conversation at the next step',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "id"}.',
    load: (): Promise<Run> => import('./steer.ts').then(({ compact }) => compact),
  },
  handoff: {
    group: 'Move',
    what: 'move a session, mid-turn',
    args: SESSION,
    flags: {
      ...OUT,
      to: {
        type: 'string',
        value: 'RUNNER|POOL',
        values: 'place',
        what: 'where to; default: any other runner that is online',
      },
      'no-wait': { type: 'boolean', what: 'return when the relay has the order' },
    },
    more: 'Waits until the target has the session; Ctrl-C stops waiting, not the move.\n--json: one line a step: {"step": "asked" | "waits" | "saved" | "expired" | "moved" | "stays", "at_ms", …}; with --no-wait one {"sid", "to"}.',
    load: (): Promise<Run> => import('./handoff.ts').then(({ handoff }) => handoff),
  },
  trace: {
    group: 'Sessions',
    what: 'what it did when, how long that took and what it cost, as a waterfall',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "spans": [{"kind", "name", "detail", "start_ms", "end_ms", "end", "usage", …}], "totals"}.',
    load: (): Promise<Run> => import('./trace.ts').then((module) => module.trace),
  },
  fork: {
    group: 'Move',
    what: 'the same session twice, as it stands; both go on, each for itself',
    args: [
      { name: 'SESSION', values: 'session' },
      { name: 'PROMPT', optional: true, rest: true },
    ],
    flags: {
      ...OUT,
      on: {
        type: 'string',
        value: 'RUNNER|POOL',
        values: 'place',
        what: 'where; default: where the session is',
      },
    },
    more: 'PROMPT goes to the copy. The session itself goes on undisturbed.\n--json: {"sid", "origin", "seq", "runner", "started"}.',
    load: (): Promise<Run> => import('./fork.ts').then((module) => module.fork),
  },
  export: {
    group: 'Move',
    what: 'a session as one file, as it stands',
    args: [
      { name: 'SESSION', values: 'session' },
      { name: 'FILE', values: 'file' },
    ],
    flags: {
      ...OUT,
      passphrase: { type: 'boolean', what: 'seal it by a passphrase, for another account' },
      plain: { type: 'boolean', what: 'do not seal it: whoever has the file can read all of it' },
    },
    more: 'Sealed for this account, unless told otherwise. The passphrase is asked for, or taken from BATON_PASSPHRASE.\n--json: {"sid", "file", "entries", "blobs", "bytes", "sealed"}.',
    load: (): Promise<Run> => import('./export.ts').then(({ exportSession }) => exportSession),
  },
  import: {
    group: 'Move',
    what: 'a new session from a file that baton export made',
    args: [{ name: 'FILE', values: 'file' }],
    flags: {
      ...OUT,
      on: { type: 'string', value: 'RUNNER|POOL', values: 'place', what: 'where; default: this machine' },
      trust: {
        type: 'boolean',
        what: 'for a file that is not sealed for this account: its maker may run things here',
      },
    },
    more: '--json: {"sid", "origin", "entries", "blobs", "runner", "started"}.',
    load: (): Promise<Run> => import('./import.ts').then(({ importSession }) => importSession),
  },
  home: {
    group: 'Move',
    what: 'bring back what went on elsewhere while this machine slept',
    args: [{ name: 'SESSION', values: 'session', optional: true, rest: true }],
    flags: { ...OUT, all: { type: 'boolean', what: 'all of them' } },
    more: 'Without arguments it lists them.\n--json: [{"sid", "status", "runner", "title"}]; when it moves them [{"sid", "to"}].',
    load: (): Promise<Run> => import('./home.ts').then(({ home }) => home),
  },
  doctor: {
    group: 'Machine',
    what: 'check the whole way, and say what to do',
    flags: {
      ...OUT,
      live: { type: 'boolean', what: 'also ask the model for one word (costs a little)' },
      workspace: {
        type: 'string',
        multiple: true,
        value: 'DIR',
        values: 'folder',
        what: 'also look at the config of this folder, which runs it; those that are served here are looked at anyway',
      },
    },
    more: 'Ends with 1 when something is wrong.\n--json: {"ok", "checks": [{"name", "state": "ok" | "warning" | "problem", "says", "todo"}]}.',
    load: (): Promise<Run> => import('./doctor.ts').then(({ doctor }) => doctor),
  },
  trust: {
    group: 'Machine',
    what: 'say that you have seen the config of a folder in which sessions work in place',
    args: [{ name: 'FOLDER', values: 'folder', optional: true }],
    flags: OUT,
    more: 'Runs the config once. From then on it counts, as it is, with the files that it imports.\n--json: {"folder", "files"}.',
    load: (): Promise<Run> => import('./trust.ts').then(({ trust }) => trust),
  },
  completion: {
    group: 'Machine',
    what: 'a script that completes baton commands',
    args: [{ name: 'SHELL', values: SHELLS }],
    flags: { json: { type: 'boolean', what: 'print JSON for programs' } },
    more: '  bash   eval "$(baton completion bash)"           in ~/.bashrc\n  zsh    eval "$(baton completion zsh)"            in ~/.zshrc, after compinit\n  fish   baton completion fish | source            in ~/.config/fish/config.fish',
    load: (): Promise<Run> => import('./completion.ts').then(({ completion }) => completion),
  },
  'guest new': {
    group: 'Guest',
    what: 'a pausable program in a file, without a relay',
    args: [{ name: 'AGENT.ts', values: 'file' }],
    flags: {
      out: { type: 'string', short: 'o', value: 'FILE', values: 'file', what: 'where to write it' },
      engine: { type: 'string', value: 'FILE', values: 'file', what: 'another engine' },
      seed: { type: 'string', value: 'HEX', what: 'seed of its random numbers, 64 hex digits' },
      now: { type: 'string', value: 'MS', what: 'its clock at the start' },
      mode: { type: 'string', value: 'MODE', values: MODES, what: 'its mode' },
      json: OUT.json,
    },
    load: guest('new'),
  },
  'guest step': {
    group: 'Guest',
    what: 'run it a while in this process, save, exit',
    args: [{ name: 'FILE', values: 'file' }],
    flags: {
      'slice-ms': { type: 'string', value: 'N', what: 'how long, in milliseconds' },
      fuel: { type: 'string', value: 'N', what: 'how long, in loop turns' },
      engine: { type: 'string', value: 'FILE', values: 'file', what: 'another engine' },
      json: OUT.json,
    },
    load: guest('step'),
  },
  'guest reply': {
    group: 'Guest',
    what: 'answer what it asked for: a text, yes or no, or JSON',
    args: [{ name: 'FILE', values: 'file' }, { name: 'EFFECT' }, { name: 'VALUE' }],
    flags: { error: { type: 'boolean', what: 'the answer is an error' }, json: OUT.json },
    load: guest('reply'),
  },
  'guest fork': {
    group: 'Guest',
    what: 'the same program twice; the copy draws other random numbers',
    args: [
      { name: 'FILE', values: 'file' },
      { name: 'COPY', values: 'file' },
    ],
    flags: { seed: { type: 'string', value: 'HEX', what: 'the seed of the copy' }, json: OUT.json },
    load: guest('fork'),
  },
  'guest inspect': {
    group: 'Guest',
    what: 'state, open effects and transcript',
    args: [{ name: 'FILE', values: 'file' }],
    flags: { json: OUT.json },
    load: guest('inspect'),
  },
} as const satisfies Record<string, Command>

export type CommandName = keyof typeof TABLE

/** The table without its exact types, for those who walk over it. */
export const COMMANDS: Readonly<Record<string, Command>> = TABLE

function guest(verb: string): () => Promise<Run> {
  return async () => {
    const { runGuestCommand } = await import('./guest.ts')
    return (args) => runGuestCommand([verb, ...args])
  }
}

/** The command that a command line begins with, and the words after it. */
export function commandIn(
  words: readonly string[],
): { name: string; command: Command; args: string[] } | undefined {
  const two = words.slice(0, 2).join(' ')
  for (const [name, count] of [
    [two, 2],
    [words[0] ?? '', 1],
  ] as const) {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (command && words.length >= count) return { name, command, args: words.slice(count) }
  }
  return undefined
}
