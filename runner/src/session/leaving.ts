/** What leaving needs: why and where to, and the state of the files that travel along. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { notice, unstored, type Draft } from './journal.ts'
import { boundedLine } from '../tools/text.ts'
import type { Workspace } from '../workspace/workspace.ts'
import type { Live } from './live.ts'
import { urgencyOf, type SavingTurns } from './urgency.ts'

export interface Leave {
  /** `room`: it has computed for long, and others wait for its place. */
  why: 'move' | 'shutdown' | 'room'
  place?: Placement
  label?: string
  /** Running effects may finish within this time, in milliseconds; what still runs then is cut off. */
  within_ms: number
  /** Many leave at once, in a hurry: each saves when it is its turn. */
  turns?: SavingTurns
}

/** A leave under way. */
export interface Leaving extends Leave {
  /** On the monotonic clock. */
  until: number
  /** The journal tells that the session waits for what runs. */
  told: boolean
  files?: Promise<StoredFiles>
  stored?: StoredFiles
}

/** What to write about the workspace, and where the session must stay when it could not be stored. */
export interface StoredFiles {
  drafts: Draft[]
  stay?: Placement
}

/**
 * Stores the workspace. After a tool was `cut` off the last checkpoint stands: it is what the journal tells of, and what the tool
 * left half-done must not travel. Throws `lease-lost`.
 */
export async function storeFiles(
  live: Live,
  device: string,
  cut: boolean,
  turns?: SavingTurns,
): Promise<StoredFiles> {
  const work = (): Promise<StoredFiles> => storeNow(live, device, cut)
  return turns ? turns.take(urgencyOf(live), work) : work()
}

async function storeNow(live: Live, device: string, cut: boolean): Promise<StoredFiles> {
  // Files that never arrived here have nothing new in them.
  const workspace = await live.workspace.catch(() => undefined)
  if (!workspace) return { drafts: [] }
  // What jobs write later would not travel.
  const told = jobsEnded(workspace)
  await workspace.stay?.end()
  try {
    // The first checkpoint may still be on its way; without it no other runner could go on.
    if (cut) await live.checkpoints.settled()
    const checkpoint = cut ? undefined : await live.checkpoints.store(workspace)
    return { drafts: checkpoint ? [...told, checkpoint] : told }
  } catch (error) {
    if (error instanceof BatonError && error.code === 'lease-lost') throw error
    // The newest files exist only here: nobody else may continue with older ones (I11).
    const text = `The workspace could not be stored, so the session stays on this runner. ${explain(error)}`
    return { drafts: [...told, unstored(text)], stay: { prefer: device, pin: true } }
  }
}

/** A job ends with its session's stay on this machine: whoever counts on it has to know. */
function jobsEnded({ stay }: Workspace): Draft[] {
  const running = stay?.jobs?.list().filter(({ state }) => state.at === 'running') ?? []
  if (running.length === 0) return []
  const commands = running.map(({ command }) => boundedLine(command.trim().split('\n', 1)[0] ?? '', 80))
  return [
    notice(`Background jobs ended here, because the session leaves this machine: ${commands.join('; ')}`),
  ]
}
