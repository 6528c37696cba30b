/** Commands of a session that wait, and what each becomes when it is consumed: entries, and what the runner then does (I6). */
import { explain } from '@baton/shared/errors.ts'
import { openCommand } from '@baton/shared/entries.ts'
import type { Received } from '@baton/shared/journal.ts'
import type { Command, Placement } from '@baton/shared/protocol.ts'
import { objectionTo, objectionToMode, type DecisionContext } from './decisions.ts'
import type { Draft } from './journal.ts'
import { ruledDecision, type Policy } from './permissions.ts'
import type { SessionState } from './state.ts'

/** The commands that wait. A number is taken once, however often it is heard of. */
export class Inbox {
  readonly #waiting = new Map<number, Command>()
  readonly #taken = new Set<number>()
  /** Told of before the whole inbox was read: what was sent before them may be missing, so they wait for it. */
  #early: Command[] | undefined = []

  add(command: Command): void {
    if (!this.#taken.has(command.n)) this.#waiting.set(command.n, command)
  }

  /** The relay told of one. Gives what can be added now. */
  hear(command: Command): Command[] {
    if (!this.#early) return this.#new([command])
    this.#early.push(command)
    return []
  }

  /** The whole inbox, as it was read after the claim. Gives what can be added now. */
  whole(commands: readonly Command[]): Command[] {
    const early = this.#early ?? []
    this.#early = undefined
    return this.#new([...commands, ...early])
  }

  /** Those that nothing was heard of yet. */
  #new(commands: Command[]): Command[] {
    return commands.filter(({ n }) => !this.#taken.has(n) && !this.#waiting.has(n))
  }

  /** In order of number. */
  waiting(): Command[] {
    return [...this.#waiting.values()].toSorted((a, b) => a.n - b.n)
  }

  /** Number of the newest command that was heard of, 0 for none. */
  get newest(): number {
    return Math.max(0, ...this.#waiting.keys(), ...this.#taken)
  }

  take({ n }: Command): void {
    this.#waiting.delete(n)
    this.#taken.add(n)
  }
}

/** What to write when a command is consumed, and what follows. `later`: it keeps waiting. */
export type Consumption =
  | 'later'
  | { drafts: Draft[]; next?: 'stop' }
  | { drafts: Draft[]; next: 'leave'; place: Placement; label: string }

export interface InboxContext extends Omit<DecisionContext, 'open'> {
  state: SessionState
  key: Uint8Array
  now: number
}

/** Decides about one command of a started session. */
export function consume(command: Command, context: InboxContext): Consumption {
  try {
    return decide(command, context)
  } catch (error) {
    return { drafts: [unreadable(command, error, context.now)] }
  }
}

/** What is written of a command that can't be applied by anybody. */
export function unreadable({ id, n, device, kind }: Command, error: unknown, now: number): Draft {
  const why = `A command of kind ${kind} could not be read and was dropped. ${explain(error)}`
  const body: Received = { kind: 'unreadable', command: { kind }, why, id, device, now }
  return { kind: 'received', body, consumes: { n, id } }
}

function decide(command: Command, context: InboxContext): Consumption {
  const { sid, key, state, now } = context
  const received = (rest: DistributiveOmit<Received, 'id' | 'device' | 'now'>): Draft => ({
    kind: 'received',
    body: { id: command.id, device: command.device, now, ...rest },
    consumes: { n: command.n, id: command.id },
  })
  switch (command.kind) {
    case 'start':
      // The session has started; a second start, sent by mistake, must not stay in the way.
      return {
        drafts: [received({ kind: 'start', command: openCommand(key, sid, { ...command, kind: 'start' }) })],
      }
    case 'prompt': {
      const waiting = Array.from(state.open.values()).filter(({ intent }) => intent.kind === 'prompt')
      if (waiting.length === 0) return 'later'
      const body = openCommand(key, sid, { ...command, kind: 'prompt' })
      const open =
        waiting.find(({ intent }) => !intent.prompt?.steer) ?? (body.steer === true ? waiting[0] : undefined)
      if (!open) return 'later'
      const { text, images } = body
      const steer = body.steer === true ? { steer: true } : {}
      const result = { text, command: command.id, ...(images ? { images } : {}), ...steer }
      return {
        drafts: [
          { ...received({ kind: 'prompt', command: body }), blobs: (images ?? []).map(({ blob }) => blob) },
          { kind: 'outcome', body: { effect: open.intent.effect, now, result } },
        ],
      }
    }
    case 'decision': {
      const body = openCommand(key, sid, { ...command, kind: 'decision' })
      const late = objectionTo(body, { ...context, open: state.open })
      if (late !== undefined) return { drafts: [received({ kind: 'decision', command: body, late })] }
      const note = body.note === undefined ? {} : { note: body.note }
      const result = { approved: body.approved, device: body.device, ...note }
      return {
        drafts: [
          received({ kind: 'decision', command: body }),
          { kind: 'outcome', body: { effect: body.effect, now, result } },
        ],
      }
    }
    case 'mode': {
      const body = openCommand(key, sid, { ...command, kind: 'mode' })
      const objection = { ...context, open: state.open, revision: state.mode.revision }
      const late = objectionToMode(body, objection)
      if (late !== undefined) return { drafts: [received({ kind: 'mode', command: body, late })] }
      const forbidden = forbiddenBy({ ...context.policy, mode: body.mode }, state, now)
      return { drafts: [received({ kind: 'mode', command: body }), ...forbidden] }
    }
    case 'settings':
      return {
        drafts: [
          received({ kind: 'settings', command: openCommand(key, sid, { ...command, kind: 'settings' }) }),
        ],
      }
    case 'compact':
      return { drafts: [received({ kind: 'compact', command: {} })] }
    case 'document':
      return {
        drafts: [
          received({ kind: 'document', command: openCommand(key, sid, { ...command, kind: 'document' }) }),
        ],
      }
    case 'stop':
      return { drafts: [received({ kind: 'stop', command: {} }), ...stopApprovals(state, now)], next: 'stop' }
    case 'move': {
      const body = openCommand(key, sid, { ...command, kind: 'move' })
      const to = command.place ?? {}
      return {
        drafts: [received({ kind: 'move', command: body, place: to })],
        next: 'leave',
        place: to,
        label: body.label,
      }
    }
  }
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never

/** What waits for a decision and must not run in the new mode: it is answered at once, as if it were asked for now. */
function forbiddenBy(policy: Policy, { open }: SessionState, now: number): Draft[] {
  return Array.from(open.values()).flatMap(({ intent: { effect, approve } }) => {
    const ruled = approve && ruledDecision(policy, approve)
    return ruled?.approved === false ? [{ kind: 'outcome', body: { effect, now, result: { ...ruled } } }] : []
  })
}

/** Stop also ends the waiting for a decision; running effects end by themselves when they are aborted. */
function stopApprovals(state: SessionState, now: number): Draft[] {
  return Array.from(state.open.values())
    .filter(({ intent }) => intent.kind === 'approve')
    .map(({ intent }) => ({
      kind: 'outcome',
      body: { effect: intent.effect, now, error: { code: 'stopped', message: 'Stopped by a person.' } },
    }))
}
