/** The files of a session that leaves, stored; or what is told when they could not be. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { boundedLine } from '../tools/text.ts'
import type { Workspace } from '../workspace/workspace.ts'
import { notice, unstored, type Draft } from './journal.ts'
import type { Live } from './live.ts'
import { urgencyOf, type SavingTurns } from './urgency.ts'

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
