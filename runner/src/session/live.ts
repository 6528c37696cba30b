/** A session's guest and everything around it while a runner holds it. */
import type { EffectRequest, Pause, StartMessage } from '@baton/shared/guest.ts'
import type { Harness } from '../harness.ts'
import type { Agent, Rule } from '@baton/shared/journal.ts'
import type { Tool } from '../tools/tool.ts'
import type { Workspace } from '../workspace/workspace.ts'
import type { Checkpoints } from './checkpoints.ts'
import { Conversations } from './conversations.ts'
import type { Images } from './images.ts'
import type { AwaitedRequest } from './requests.ts'
import { reseedOf, type Deliverable, type SessionState } from './state.ts'

export interface Live {
  readonly harness: Harness
  readonly agent: Agent
  /** Seq of the snapshot entry that says so; 0: none does yet. */
  agent_at: number
  /** Seq of the snapshot entry of its baseline; 0: none, in a copy. */
  baseline_at: number
  readonly state: SessionState
  readonly start: StartMessage
  readonly tools: ReadonlyMap<string, Tool>
  /** From configs: of the runner where the session began, and what restricts it here. */
  readonly rules: readonly Rule[]
  /** Settles when the files are there; a restored guest goes on meanwhile. */
  readonly workspace: Promise<Workspace>
  /** The same, once they are. */
  here?: Workspace
  readonly checkpoints: Checkpoints
  readonly conversations: Conversations
  readonly images: Images
  readonly readFiles: Map<string, string>
  /** What the agent does not know yet of its files on this machine: goes with the next result of a tool. */
  readonly news: string[]
  pause: Pause
  /** The highest effect that the guest has asked for and that the journal knows. It can't ask for an earlier one anew. */
  asked: number
  /** Seq of the newest good snapshot, 0 for none, and of the one before. */
  snapshot: number
  previous: number
  /** The guest ran since that snapshot. */
  dirty: boolean
  /** The newest snapshot is one for a session that rests. */
  isLean: boolean
  /** Requests of open effects, as far as they are known here. */
  readonly requests: Map<number, AwaitedRequest>
  /** Effects to start. `first`: the intent stands. `again`: an earlier runner was cut off, a new attempt needs its own intent. */
  readonly toStart: Map<number, 'first' | 'again'>
  /** Blobs that a restore from the newest snapshot needs. */
  savedBlobs: string[]
  /** Requests that came while the session was leaving: the next runner starts them. */
  carried: EffectRequest[]
}

export function newLive(
  parts: Pick<
    Live,
    | 'harness'
    | 'agent'
    | 'agent_at'
    | 'baseline_at'
    | 'isLean'
    | 'state'
    | 'start'
    | 'tools'
    | 'rules'
    | 'images'
    | 'news'
    | 'savedBlobs'
    | 'workspace'
    | 'checkpoints'
    | 'pause'
    | 'asked'
    | 'snapshot'
    | 'previous'
  >,
): Live {
  const live: Live = {
    ...parts,
    conversations: new Conversations(),
    readFiles: new Map(),
    dirty: false,
    requests: new Map(),
    toStart: new Map(),
    carried: [],
  }
  parts.workspace.then(
    (workspace) => (live.here = workspace),
    () => undefined,
  )
  return live
}

/** The message that the guest may get now: blocked, only the outcome that it waits for; else the first in the journal. */
export function nextOf({ pause, state }: Live): Deliverable | undefined {
  if (pause.state === 'blocked') {
    return state.queue.find((deliverable) => deliverable.effect === pause.on || reseedOf(deliverable))
  }
  return state.queue[0]
}

/**
 * Takes that message out of the queue. A guest that is blocked never hears of Stop; with the next prompt a turn begins that this
 * Stop did not mean (H10).
 */
export function takeNext(live: Live): Deliverable | undefined {
  const next = nextOf(live)
  if (!next) return undefined
  const { state } = live
  const isOver = (other: Deliverable): boolean => beginsTurn(next) && isStop(other) && other.seq < next.seq
  state.queue = state.queue.filter((other) => other !== next && !isOver(other))
  return next
}

export function isStop({ entry }: Deliverable): boolean {
  return entry.kind === 'received' && entry.body.kind === 'stop'
}

/** Is it the answer to `prompt`, not meant for a turn under way? */
function beginsTurn({ entry }: Deliverable): boolean {
  if (entry.kind !== 'outcome') return false
  const { result } = entry.body
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  return typeof result['command'] === 'string' && result['steer'] !== true
}

/** Would the guest hear a message about this effect now? */
export function listens(pause: Pause, effect: number): boolean {
  return pause.state === 'quiescent' || (pause.state === 'blocked' && pause.on === effect)
}
