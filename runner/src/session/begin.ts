/** How a session comes to life on a runner: for the first time, or from its snapshot and the tail of its journal. */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { fromUtf8 } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, Pause, StartMessage } from '@baton/shared/guest.ts'
import {
  blobsOfSnapshot,
  type Agent,
  type Rule,
  type SandboxWish,
  type SnapshotEntry,
  type StartCommand,
} from '@baton/shared/journal.ts'
import type { BlobStore } from '@baton/shared/blobs.ts'
import type { Harness } from '../harness.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { engineFor } from './engine.ts'
import type { Journal } from './journal.ts'
import type { SessionOptions } from './options.ts'
import type { Snapshots } from './snapshots.ts'
import { readStart } from './start-message.ts'
import { emptyState, fold, type SessionState } from './state.ts'

export interface Begun {
  harness: Harness
  agent: Agent
  /** Seq of the snapshot entry that says so. */
  agent_at: number
  /** That entry, when it is of the baseline; 0: it is not. */
  baseline_at: number
  /** The snapshot is one for a session that rests. */
  isLean: boolean
  pause: Pause
  asked: number
  state: SessionState
  start: StartMessage
  /** Rules of the config where the session began. */
  rules: Rule[]
  /** The sandbox of its commands, as it was wanted there. */
  sandbox: SandboxWish | undefined
  /** The workspace folder as the person named it, on the machine where the session began. */
  folder: string
  /** Effects with an intent that the runner before had not come to. */
  unstarted: number[]
  savedBlobs: string[]
  /** Seq of the snapshot that the guest was restored from; 0: none yet. */
  snapshot: number
  /** The snapshot before it, for when it proves bad. */
  previous: number
}

/** A guest at its baseline waits for the start message. */
const AT_BASELINE: Pause = { state: 'quiescent', asked: [] }

/** A fresh guest for a start command; its bundle is stored so that any runner can restore it. */
export async function openGuest(
  options: SessionOptions,
  journal: Journal,
  blobs: BlobStore,
  command: StartCommand,
): Promise<{ harness: Harness; agent: Agent }> {
  const bundle = command.bundle
    ? await fetchBundle(blobs, journal, command.bundle)
    : await options.agent(command.agent)
  const harness = options.harness(bundle)
  const header = await harness.open()
  const bundle_blob =
    command.bundle ?? (await blobs.put(journal.sid, journal.key, deflateRawSync(bundle, { level: 9 })))
  const { engine, baseline } = header
  return { harness, agent: { name: command.agent, engine, bundle: header.bundle, baseline, bundle_blob } }
}

/**
 * Restores the guest from the snapshot at `seq` and reads what the journal says since. Throws BatonError `snapshot-…`,
 * `no-blob`, `bad-blob`, `cannot-open` when that snapshot can't be used.
 */
export async function restoreGuest(
  options: SessionOptions,
  journal: Journal,
  blobs: BlobStore,
  snapshots: Snapshots,
  at: { snapshot: number; checkpoint: number },
): Promise<Begun> {
  const { body: entry } = await journal.at(at.snapshot, 'snapshot')
  const { agent, agent_at, baseline_at } = await agentOf(journal, entry, at.snapshot)
  const state = emptyState()
  const [bundle, files, received, asks] = await Promise.all([
    fetchBundle(blobs, journal, agent.bundle_blob),
    snapshots.fetch(entry),
    journal.at(entry.start, 'received'),
    fetchAsks(blobs, journal, entry.asks),
    readState(journal, entry, at, state),
  ])
  const { sid, key } = journal
  const start = await readStart({ blobs, sid, key }, received.body)
  if (received.body.kind !== 'start') throw new BatonError('journal-gap', '(start)')
  const harness = options.harness(bundle, await engineFor(options, journal.gone, agent.engine))
  try {
    const pause = await restorePause(harness, entry, agent, files)
    const { asked, previous } = entry
    const base = {
      harness,
      agent,
      agent_at,
      baseline_at,
      isLean: entry.lean === true,
      state,
      start,
      rules: received.body.rules ?? [],
      sandbox: received.body.sandbox,
      folder: received.body.command.workspace,
      asked,
      // One that claimed the session since may have come to them.
      unstarted: state.claims > 1 ? [] : (entry.unstarted ?? []),
      savedBlobs: blobsOfSnapshot(entry, agent),
      snapshot: at.snapshot,
      previous,
    }
    return { ...base, pause: { ...pause, asked: [...asks, ...pause.asked] } }
  } catch (error) {
    await harness.close()
    throw error
  }
}

/** What the guest is, and which entry says so: this one, or the one that it names. */
async function agentOf(
  journal: Journal,
  entry: SnapshotEntry,
  seq: number,
): Promise<{ agent: Agent; agent_at: number; baseline_at: number }> {
  const at = entry.agent ? seq : (entry.agent_at ?? 0)
  const { agent, state } = entry.agent ? entry : (await journal.at(at, 'snapshot')).body
  if (!agent) throw new BatonError('journal-gap', `(no agent at ${at})`)
  return { agent, agent_at: at, baseline_at: state === 'baseline' ? at : 0 }
}

async function restorePause(
  harness: Harness,
  entry: SnapshotEntry,
  agent: Agent,
  files: Uint8Array[],
): Promise<Pause> {
  if (entry.state === 'baseline') {
    const header = await harness.open()
    for (const name of ['engine', 'bundle', 'baseline'] as const) {
      if (header[name] !== agent[name]) {
        const code = name === 'engine' ? 'snapshot-engine' : 'snapshot-baseline'
        throw new BatonError(code, `It needs ${name} ${agent[name]}, this runner has ${header[name]}.`)
      }
    }
    return AT_BASELINE
  }
  return harness.restore(files)
}

async function readState(
  journal: Journal,
  entry: SnapshotEntry,
  at: { snapshot: number; checkpoint: number },
  state: SessionState,
): Promise<void> {
  const tail: Opened[] = []
  const [earlier, checkpoint] = await Promise.all([
    Promise.all([
      ...entry.open.filter((seq) => seq <= entry.covers).map((seq) => journal.at(seq, 'intent')),
      ...entry.undelivered.map((seq) => deliverableAt(journal, seq)),
    ]),
    at.checkpoint > 0 ? journal.at(at.checkpoint, 'checkpoint') : undefined,
    (async () => {
      for await (const opened of journal.read(entry.covers + 1)) tail.push(opened)
    })(),
  ])
  if (entry.copied !== undefined) {
    const { body, seq } = await journal.at(entry.copied, 'received')
    if (body.kind === 'start' && body.copied) state.copied = { ...body.copied, seq }
  }
  if (checkpoint) fold(state, { ...checkpoint, kind: 'checkpoint' })
  for (const opened of earlier.toSorted((a, b) => a.seq - b.seq)) fold(state, opened)
  // As they stood at the snapshot, whatever of the earlier entries is folded again.
  state.approvals = new Map(entry.approvals.map(({ effect, digest }) => [effect, digest]))
  state.mode = { ...entry.mode }
  state.rules = [...entry.rules]
  state.stopped = entry.stopped ?? 0
  for (const opened of tail) fold(state, opened)
  state.start = entry.start
}

async function deliverableAt(journal: Journal, seq: number): Promise<Opened> {
  return journal.at(seq, 'outcome').catch(() => journal.at(seq, 'received'))
}

/** Bundles by the hash of their blob: the same few agents run again and again. */
const bundles = new Map<string, Uint8Array>()
const BUNDLES_MAX = 16

async function fetchBundle(blobs: BlobStore, journal: Journal, hash: string): Promise<Uint8Array> {
  const known = bundles.get(hash)
  if (known) return known
  const bundle = inflateRawSync(await blobs.get(journal.sid, journal.key, hash))
  const [oldest] = bundles.keys()
  if (bundles.size >= BUNDLES_MAX && oldest !== undefined) bundles.delete(oldest)
  bundles.set(hash, bundle)
  return bundle
}

async function fetchAsks(
  blobs: BlobStore,
  journal: Journal,
  hash: string | undefined,
): Promise<EffectRequest[]> {
  if (hash === undefined) return []
  return JSON.parse(fromUtf8(await blobs.get(journal.sid, journal.key, hash))) as EffectRequest[]
}
