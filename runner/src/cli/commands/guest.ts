/** Commands of the pausable guest, without a relay. */
import { OUT, MODES, type Command, type Run } from '../command.ts'

export const GUEST = {
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
    load: (): Promise<Run> => import('../guest.ts').then(({ guestNew }) => guestNew),
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
    load: (): Promise<Run> => import('../guest.ts').then(({ guestStep }) => guestStep),
  },
  'guest reply': {
    group: 'Guest',
    what: 'answer what it asked for: a text, yes or no, or JSON',
    args: [{ name: 'FILE', values: 'file' }, { name: 'EFFECT' }, { name: 'VALUE' }],
    flags: { error: { type: 'boolean', what: 'the answer is an error' }, json: OUT.json },
    load: (): Promise<Run> => import('../guest.ts').then(({ guestReply }) => guestReply),
  },
  'guest fork': {
    group: 'Guest',
    what: 'the same program twice; the copy draws other random numbers',
    args: [
      { name: 'FILE', values: 'file' },
      { name: 'COPY', values: 'file' },
    ],
    flags: { seed: { type: 'string', value: 'HEX', what: 'the seed of the copy' }, json: OUT.json },
    load: (): Promise<Run> => import('../guest.ts').then(({ guestFork }) => guestFork),
  },
  'guest inspect': {
    group: 'Guest',
    what: 'state, open effects and transcript',
    args: [{ name: 'FILE', values: 'file' }],
    flags: { json: OUT.json },
    load: (): Promise<Run> => import('../guest.ts').then(({ guestInspect }) => guestInspect),
  },
} as const satisfies Record<string, Command>
