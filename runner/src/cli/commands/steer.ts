/** Commands by which a person steers a session. */
import { EFFECT, OUT, SESSION, MODES, EFFORTS, AFTER_PLAN, type Command, type Run } from '../command.ts'

export const STEER = {
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
    load: (): Promise<Run> => import('../steer.ts').then(({ prompt }) => prompt),
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
    load: (): Promise<Run> => import('../decide.ts').then((module) => module.approve),
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
    load: (): Promise<Run> => import('../decide.ts').then((module) => module.deny),
  },
  stop: {
    group: 'Steer',
    what: 'stop what runs',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "id"}.',
    load: (): Promise<Run> => import('../steer.ts').then(({ stop }) => stop),
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
    load: (): Promise<Run> => import('../steer.ts').then(({ mode }) => mode),
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
    more: 'A model that is not known here is warned of, and asked for all the same.\n--json: {"sid", "id", "settings"}, and {"warnings": […]}.',
    load: (): Promise<Run> => import('../steer.ts').then(({ set }) => set),
  },
  compact: {
    group: 'Steer',
    what: 'compact the conversation at the next step',
    args: SESSION,
    flags: OUT,
    more: '--json: {"sid", "id"}.',
    load: (): Promise<Run> => import('../steer.ts').then(({ compact }) => compact),
  },
} as const satisfies Record<string, Command>
