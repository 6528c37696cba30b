/** Brings a session to life on this runner: starts it, or restores the newest state that is good. */
import { setTimeout as sleep } from 'node:timers/promises'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Command } from '@baton/shared/protocol.ts'
import type { Workspace } from '../workspace/workspace.ts'
import { adoptOrphans } from './asks.ts'
import { openGuest, restoreGuest, type Begun } from './begin.ts'
import type { Book } from './book.ts'
import { Checkpoints } from './checkpoints.ts'
import { reseedInterrupted, writeCopied } from './copy.ts'
import { openCommand } from '@baton/shared/entries.ts'
import { arrived, failure, notice, unstored, type Draft } from './journal.ts'
import { newLive, type Live } from './live.ts'
import type { Lease, SessionOptions } from './options.ts'
import { Images } from './images.ts'
import { restricting, tightened } from './permissions.ts'
import type { Snapshots } from './snapshots.ts'
import { boundedTools, keptStart, startMessage } from './start-message.ts'
import { emptyState } from './state.ts'

export interface Opening {
  options: SessionOptions
  lease: Lease
  book: Book
  snapshots: Snapshots
  /** Writes an entry when the session comes to it. */
  write: (draft: Draft) => void
  log: (message: string) => void
}

/** Starts a fresh session. Undefined: it could not start; the journal says why, and the session has failed. */
export async function start(
  opening: Opening,
  command: Command & { kind: 'start' },
): Promise<Live | undefined> {
  const { options, book, lease } = opening
  const { journal, blobs } = book
  const body = openCommand(journal.key, lease.sid, command)
  const consumes = { n: command.n, id: command.id }
  const received = {
    id: command.id,
    device: command.device,
    now: Date.now(),
    kind: 'start' as const,
    command: body,
  }
  const refuse = async (error: unknown): Promise<undefined> => {
    if (!(error instanceof BatonError) || error.code === 'lease-lost') throw error
    await journal.append([
      { kind: 'received', body: received, consumes },
      failure(error.code, explain(error)),
    ])
  }
  if (body.copy) {
    const at = await writeCopied({ options, book, received, copy: body.copy, consumes }).catch(refuse)
    return at && restore({ ...opening, lease: { ...lease, checkpoint: at.checkpoint } }, at.snapshot)
  }
  let begun: Workspace | undefined
  try {
    const workspace = await options.openWorkspace(lease.sid, body.workspace, body.settings)
    begun = workspace
    const { root } = workspace
    const tell = (text: string): void => opening.write(notice(text))
    const tools = boundedTools(await options.tools(body.workspace, { root, tell }), tell)
    const rules = await options.rules(body.workspace)
    const message = await startMessage(
      options,
      lease.sid,
      body,
      tools.map((tool) => tool.spec),
      workspace,
    )
    const { harness, agent } = await openGuest(options, journal, blobs, body)
    const live = newLive({
      ...{ harness, agent, start: message, rules, state: emptyState(), snapshot: 0, previous: 0 },
      checkpoints: new Checkpoints(blobs, lease.sid, journal.key, undefined, teller(opening)),
      images: new Images({ blobs, sid: lease.sid, key: journal.key }),
      tools: new Map(tools.map((tool) => [tool.spec.name, tool])),
      workspace: Promise.resolve(workspace),
      pause: { state: 'quiescent', asked: [] },
      ...{ asked: 0, savedBlobs: [agent.bundle_blob], agent_at: 0, news: [] },
      ...{ baseline_at: 0, isLean: false },
    })
    const { sandbox } = workspace.stay ?? {}
    const kept = await keptStart({ blobs, sid: lease.sid, key: journal.key }, message)
    const told = { ...kept.body, rules, ...(sandbox ? { sandbox } : {}) }
    const first: Draft = {
      ...{ kind: 'received', body: { ...received, ...told }, consumes },
      blobs: kept.blobs,
    }
    const where = notice(`Works ${whereOf(workspace)}`)
    await book.append(live, [first, book.baselineDraft(live, journal.tail + 1), where])
    tellOf(workspace, opening.write)
    tellWhenReady(opening, workspace)
    void storeFirst(opening, live.checkpoints, workspace)
    return live
  } catch (error) {
    await begun?.close()
    return refuse(error)
  }
}

function whereOf({ stay, inPlace, root }: Workspace): string {
  if (stay?.files) return 'on files that live in the session itself'
  return `${inPlace ? 'in the folder itself' : 'on a copy of the files'}: ${root}`
}

function teller({ write }: Opening): (sentence: string) => void {
  return (sentence) => write(notice(sentence))
}

/** Tools wait for the person's set-up; what became of it is told. */
function tellWhenReady(opening: Opening, { ready }: Workspace): void {
  // Tools that wait for it hear of its failure.
  ready?.then((sentences) => sentences.forEach(teller(opening))).catch(() => undefined)
}

/** The first checkpoint carries the whole history and may take a while; the agent need not wait for it. */
function storeFirst(opening: Opening, checkpoints: Checkpoints, workspace: Workspace): Promise<void> {
  return checkpoints.store(workspace).then(
    (draft) => draft && opening.write(draft),
    (error: unknown) =>
      opening.write(
        unstored(
          `The workspace could not be stored: until it is, the session goes on only here. ${explain(error)}`,
        ),
      ),
  )
}

/** Starting git's processes holds up this one: a guest that wakes shall answer first. */
const FILES_AFTER_MS = 15

/** Restores from the snapshot at `seq`, or from the newest one before it that can be used (F28). */
export async function restore(opening: Opening, seq: number): Promise<Live> {
  const { options, book, lease, snapshots } = opening
  const { journal, blobs } = book
  const at = { snapshot: seq, checkpoint: lease.checkpoint }
  let begun
  try {
    begun = await restoreGuest(options, journal, blobs, snapshots, at)
  } catch (error) {
    const { previous } = (await journal.at(seq, 'snapshot')).body
    if (!isBadSnapshot(error) || previous === 0) throw error
    opening.log(`snapshot at ${seq} is bad, using the one at ${previous}: ${explain(error)}`)
    await journal.append([
      notice(`A snapshot could not be used; continued from the one before. ${explain(error)}`),
    ])
    return restore(opening, previous)
  }
  const checkpoints = new Checkpoints(
    ...([blobs, lease.sid, journal.key, begun.state.checkpoint?.entry, teller(opening)] as const),
  )
  const news: string[] = []
  const workspace = sleep(FILES_AFTER_MS).then(() => restoreWorkspace(opening, begun, checkpoints, news))
  // Whoever needs the files gets the reason; a session that needs none goes on.
  workspace.catch((error: unknown) => opening.log(`workspace not restored: ${explain(error)}`))
  try {
    const tell = (text: string): void => opening.write(notice(text))
    const origin = { sid: lease.sid, checkpoint: begun.state.checkpoint?.entry, arrived: workspace }
    const own = await options.tools(begun.folder, { known: begun.start.tools, origin, tell })
    const tools = new Map(tightened(own, begun.start.tools).map((tool) => [tool.spec.name, tool]))
    const rules = [...begun.rules, ...restricting(await options.rules(begun.folder, origin))]
    const images = new Images({ blobs, sid: lease.sid, key: journal.key })
    const live = newLive({ ...begun, tools, rules, workspace, checkpoints, images, news })
    live.dirty = await reseedInterrupted(begun)
    await book.append(live, adoptOrphans(live, Date.now(), begun.unstarted))
    // When the guest runs again: it need not wait for this.
    opening.write(arrived())
    return live
  } catch (error) {
    await begun.harness.close()
    await workspace.then((arrived) => arrived.close()).catch(() => undefined)
    throw error
  }
}

const LEFT = {
  stored:
    'The runner that it was moved away from has newer files, which it could not store: the session goes on from older ones.',
  none: 'The runner that it was moved away from has stored no files: the session goes on with the folder as it is here.',
}

/** The guest goes on while its files are still on their way; tools wait for them. `news`: takes what the agent should know of them. */
async function restoreWorkspace(
  opening: Opening,
  { state, folder, sandbox, start: { settings } }: Begun,
  checkpoints: Checkpoints,
  news: string[],
): Promise<Workspace> {
  const { options, lease, write } = opening
  const entry = state.checkpoint?.entry
  if (lease.left) {
    const sentence = entry ? LEFT.stored : LEFT.none
    news.push(sentence)
    write(notice(sentence))
  }
  if (!entry) {
    // The runner ended before anything was stored: the files are where the session began, and that is here unless a person moved it.
    const workspace = await options.openWorkspace(lease.sid, folder, settings, sandbox)
    tellOf(workspace, write)
    tellWhenReady(opening, workspace)
    void storeFirst(opening, checkpoints, workspace)
    return workspace
  }
  const packs = checkpoints.packs(entry)
  const where = [lease.sid, folder, entry, packs, sandbox] as const
  const { workspace, notices = [] } = await options.restoreWorkspace(...where)
  notices.forEach(teller(opening))
  // After a cut what lies here is what the agent left half-done, and it does that again (I7). What sandbox and servers lack is for people.
  if (!state.wasCut) news.push(...notices.filter((sentence) => !workspace.stay?.notices?.includes(sentence)))
  tellWhenReady(opening, workspace)
  // What a person changed in their own folder must be safe before the agent's next tool changes it.
  if (workspace.inPlace && notices.length > 0) await storeFirst(opening, checkpoints, workspace)
  return workspace
}

/** What people should know of this machine: say, that no sandbox is to be had. */
function tellOf({ stay }: Workspace, write: (draft: Draft) => void): void {
  for (const text of stay?.notices ?? []) write(notice(text))
}

/** Other engines and lost connections are no fault of the snapshot. */
function isBadSnapshot(error: unknown): boolean {
  return (
    error instanceof BatonError &&
    ['snapshot-foreign', 'snapshot-torn', 'no-blob', 'bad-blob', 'cannot-open', 'guest-trapped'].includes(
      error.code,
    )
  )
}
