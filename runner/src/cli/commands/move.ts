/** Commands that move sessions and copy them. */
import { OUT, SESSION, type Command, type Run } from '../command.ts'

export const MOVE = {
  runners: {
    group: 'Move',
    what: 'list runners: since when, with how much room, and what they hold',
    flags: OUT,
    more: 'Since: since it is online, or when it was last seen.\n--json: an array of {"device", "name", "here", "state": "online" | "leaving" | "away", "since", "held", "capacity", "pools",\n"platform", "model", "models", "workspaces", "sessions": [{"sid", "status", "title"}]}.',
    load: (): Promise<Run> => import('../runners.ts').then(({ listRunners }) => listRunners),
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
    load: (): Promise<Run> => import('../handoff.ts').then(({ handoff }) => handoff),
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
    load: (): Promise<Run> => import('../fork.ts').then((module) => module.fork),
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
    load: (): Promise<Run> => import('../export.ts').then(({ exportSession }) => exportSession),
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
    load: (): Promise<Run> => import('../import.ts').then(({ importSession }) => importSession),
  },
  home: {
    group: 'Move',
    what: 'bring back what went on elsewhere while this machine slept',
    args: [{ name: 'SESSION', values: 'session', optional: true, rest: true }],
    flags: { ...OUT, all: { type: 'boolean', what: 'all of them' } },
    more: 'Without arguments it lists them.\n--json: [{"sid", "status", "runner", "title"}]; when it moves them [{"sid", "to"}].',
    load: (): Promise<Run> => import('../home.ts').then(({ home }) => home),
  },
} as const satisfies Record<string, Command>
