/**
 * What is inside the sealed bodies of entries and commands: the language between clients and runners that the relay can't
 * read. One schema each; types are inferred.
 */
import * as v from 'valibot'
import type { Json, LlmResult, StartMessage, ToolResult } from './guest.ts'
import { Hash, Id, Placement, Status } from './protocol.ts'

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const json = v.custom<Json>((value) => value !== undefined)
const jsonObject = v.record(v.string(), json)
/** `printed`: head and tail of what a tool had printed when a person or its own runner ended it. */
const effectError = v.object({ code: v.string(), message: v.string(), printed: v.optional(v.string()) })

export const Mode = v.picklist(['plan', 'ask', 'edit', 'full'])
export type Mode = v.InferOutput<typeof Mode>

/** A permission rule; see permissions.ts for what it matches. */
export const Rule = v.object({
  tool: v.pipe(v.string(), v.minLength(1)),
  /** For `bash` the beginning of a command, in whole words; for tools with a path, of the path. Absent: every call. */
  prefix: v.optional(v.pipe(v.string(), v.minLength(1))),
  action: v.picklist(['allow', 'ask', 'deny']),
})
export type Rule = v.InferOutput<typeof Rule>

export const Image = v.object({
  blob: Hash,
  media_type: v.picklist(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
})
export type Image = v.InferOutput<typeof Image>

// ---- commands -------------------------------------------------------------------------------------------------------

/**
 * The history of another session that a new one begins with (copy.ts). Its blobs are stored in the new session already.
 * `entries` and `sha256` are of all lines of the history, in order.
 */
export const Copy = v.object({
  origin: Id,
  /** The origin's journal up to this entry. */
  seq: count,
  /** Sealed pieces, oldest first. */
  history: v.pipe(v.array(Hash), v.maxLength(200)),
  entries: count,
  sha256: Hash,
})
export type Copy = v.InferOutput<typeof Copy>

/** Begins a session. `workspace`: a folder known to the preferred runner. `bundle`: a custom agent, as a blob of the session. */
export const StartCommand = v.object({
  agent: v.string(),
  bundle: v.optional(Hash),
  workspace: v.string(),
  mode: Mode,
  settings: v.optional(jsonObject),
  copy: v.optional(Copy),
})
export type StartCommand = v.InferOutput<typeof StartCommand>

/**
 * A prompt. `steer`: it is meant for the turn under way, and delivered at its next step; else it waits for the end of the turn. Images
 * are stored as blobs of the session before.
 */
export const PromptCommand = v.pipe(
  v.object({
    text: v.string(),
    images: v.optional(v.pipe(v.array(Image), v.maxLength(20))),
    steer: v.optional(v.boolean()),
  }),
  v.check(({ text, images }) => text !== '' || (images?.length ?? 0) > 0, 'a prompt needs text or a picture'),
)
export type PromptCommand = v.InferOutput<typeof PromptCommand>

/**
 * An answer to an approval. `signature`: signDecision over session, effect, digest, answer and rule, by the device that the
 * account vouches for with `certificate` (I10): the runner need not believe the relay about who sent it. `always`: calls that this
 * rule allows are allowed from now on, in this session; it must allow the call that was approved.
 */
export const DecisionCommand = v.object({
  effect: count,
  digest: Hash,
  approved: v.boolean(),
  note: v.optional(v.string()),
  always: v.optional(Rule),
  device: v.string(),
  certificate: v.string(),
  signature: v.string(),
})
export type DecisionCommand = v.InferOutput<typeof DecisionCommand>

export const StopCommand = v.object({})
export type StopCommand = v.InferOutput<typeof StopCommand>

/** Moves the session; where to stands in the command's plain `place`, `label` is the name shown to people. */
export const MoveCommand = v.object({ label: v.string() })
export type MoveCommand = v.InferOutput<typeof MoveCommand>

/**
 * Changes the mode. `revision`: how many changes the session has had before, so that an old one can't be played again.
 * `signature`: signMode, as for a decision. `plan`: the effect by which a plan asks; the change counts only while it waits.
 */
export const ModeCommand = v.object({
  mode: Mode,
  revision: count,
  plan: v.optional(count),
  device: v.string(),
  certificate: v.string(),
  signature: v.string(),
})
export type ModeCommand = v.InferOutput<typeof ModeCommand>

/** Changes settings of the agent, e.g. `model`, `effort`; those that are not named stay. */
export const SettingsCommand = v.object({ settings: jsonObject })
export type SettingsCommand = v.InferOutput<typeof SettingsCommand>

/** Asks for the conversation to be compacted at the agent's next step. */
export const CompactCommand = v.object({})
export type CompactCommand = v.InferOutput<typeof CompactCommand>

/** Changes a document. `version`: of the value that the person saw; the agent refuses a change of an older one. */
export const DocumentCommand = v.object({ name: v.string(), version: count, value: json })
export type DocumentCommand = v.InferOutput<typeof DocumentCommand>

export const COMMANDS = {
  start: StartCommand,
  prompt: PromptCommand,
  decision: DecisionCommand,
  stop: StopCommand,
  move: MoveCommand,
  mode: ModeCommand,
  settings: SettingsCommand,
  compact: CompactCommand,
  document: DocumentCommand,
} as const

// ---- entries --------------------------------------------------------------------------------------------------------

const receivedBase = { id: Id, device: v.string(), now: count }

/** Commands of the session run in a sandbox, wherever it is. */
export const SandboxWish = v.object({ network: v.boolean() })
export type SandboxWish = v.InferOutput<typeof SandboxWish>

/**
 * Where a copied history ends. The guest draws other random numbers from here on (F58). `snapshot`: the entry that it was
 * copied with; `blobs`: what the guest still calls by the name that it had in the origin.
 */
export const Copied = v.object({ seed: Hash, snapshot: count, blobs: v.record(Hash, Hash) })
export type Copied = v.InferOutput<typeof Copied>

/** The consumed command, whole, and what its consumption means. A decision or change of mode that does not count has `late`: why. */
export const Received = v.variant('kind', [
  v.object({
    ...receivedBase,
    kind: v.literal('start'),
    command: StartCommand,
    /** The message that the guest gets, whole: tools and surroundings as the first runner saw them. */
    start: v.optional(v.custom<StartMessage>((value) => typeof value === 'object' && value !== null)),
    /** Instead of `start`, when that is long: a sealed blob with its JSON. `access`: of its tools, by name. Without either the start failed. */
    start_blob: v.optional(
      v.object({ hash: Hash, access: v.record(v.string(), v.picklist(['read', 'edit', 'run'])) }),
    ),
    /** Permission rules of the config there and then. */
    rules: v.optional(v.array(Rule)),
    /** What was asked for there and then; other runners restrict it further. */
    sandbox: v.optional(SandboxWish),
    /** Instead of `start`, when the command named a history. */
    copied: v.optional(Copied),
  }),
  v.object({ ...receivedBase, kind: v.literal('prompt'), command: PromptCommand }),
  v.object({
    ...receivedBase,
    kind: v.literal('decision'),
    command: DecisionCommand,
    late: v.optional(v.string()),
  }),
  v.object({ ...receivedBase, kind: v.literal('stop'), command: StopCommand }),
  v.object({ ...receivedBase, kind: v.literal('move'), command: MoveCommand, place: Placement }),
  v.object({ ...receivedBase, kind: v.literal('mode'), command: ModeCommand, late: v.optional(v.string()) }),
  v.object({ ...receivedBase, kind: v.literal('settings'), command: SettingsCommand }),
  v.object({ ...receivedBase, kind: v.literal('compact'), command: CompactCommand }),
  v.object({ ...receivedBase, kind: v.literal('document'), command: DocumentCommand }),
  /** What can't be opened can't be applied by anybody, and must not stand in the way. `why` is for people. */
  v.object({
    ...receivedBase,
    kind: v.literal('unreadable'),
    command: v.object({ kind: v.string() }),
    why: v.string(),
  }),
])
export type Received = v.InferOutput<typeof Received>

/** Written before an effect starts. `digest`: requestDigest(kind, input), checked on replay (I7). */
export const Intent = v.object({
  effect: count,
  kind: v.picklist(['llm', 'tool', 'prompt', 'approve', 'sleep']),
  replay: v.picklist(['safe', 'never']),
  digest: Hash,
  /** 1, 2, 3 …; a later attempt of the same effect is an intent of its own (F27). */
  attempt: count,
  now: count,
  /** Of the attempts before, how many were cut off by a crash or a move: at most one each (I8). */
  repeated: v.optional(count),
  /** Why this attempt follows a failed one, and when it starts at the earliest (F75). */
  retry: v.optional(v.object({ code: v.string(), message: v.string(), not_before: count })),
  tool: v.optional(
    v.object({
      name: v.string(),
      input: jsonObject,
      approval: v.optional(count),
      call: v.optional(v.string()),
    }),
  ),
  /** Of a tool that no person was asked for and that does not only look: the rules that allowed it, or else the mode. */
  allowed: v.optional(v.object({ mode: v.optional(Mode), rules: v.optional(v.array(Rule)) })),
  approve: v.optional(v.object({ name: v.string(), input: jsonObject, digest: Hash })),
  /** Counts only: the conversation is in guest memory. */
  llm: v.optional(v.object({ prior: count, added: count, model: v.optional(v.string()) })),
  sleep: v.optional(v.object({ until: count })),
  prompt: v.optional(v.object({ steer: v.boolean() })),
})
export type Intent = v.InferOutput<typeof Intent>
export type Allowance = NonNullable<Intent['allowed']>

/**
 * A result too long for an entry: a sealed blob, with the first and last characters of its text for display; without `tail` the
 * head is all of the text. `thoughts`: of a model's answer, the beginning of what it said while it thought.
 */
export const BlobResult = v.object({
  hash: Hash,
  bytes: count,
  head: v.string(),
  tail: v.string(),
  thoughts: v.optional(v.string()),
})

export const Outcome = v.object({
  effect: count,
  now: count,
  result: v.optional(json),
  /** Instead of `result`: the JSON of the result is the blob's content. */
  blob: v.optional(BlobResult),
  error: v.optional(effectError),
  /** Text of a model's answer that a person stopped: they stopped it for what they had read. Not part of the conversation. */
  partial: v.optional(v.string()),
  duration_ms: v.optional(count),
  /** As in the intent. */
  repeated: v.optional(count),
})
export type Outcome = v.InferOutput<typeof Outcome>

export const Agent = v.object({
  name: v.string(),
  engine: Hash,
  bundle: Hash,
  baseline: Hash,
  /** Sealed blob of the bundle, for a runner that lacks it. */
  bundle_blob: Hash,
})
export type Agent = v.InferOutput<typeof Agent>

export const SnapshotEntry = v.object({
  /** Snapshot blobs from the oldest (relative to the baseline) to this one. Empty: the guest is at its baseline. */
  chain: v.array(Hash),
  /** Bytes of the newest blob on the wire. */
  bytes: count,
  state: v.picklist(['baseline', 'quiescent', 'blocked', 'interrupted']),
  on: v.optional(count),
  /** Every message from an entry up to this seq has reached the guest, except `undelivered`. */
  covers: count,
  undelivered: v.array(count),
  /** The highest effect that the guest had asked for, `asks` aside. */
  asked: count,
  /** Blob with the JSON of the requests among them that have no intent yet: the guest was stopped before they could start. */
  asks: v.optional(Hash),
  /** Seqs: of the `received` that carries the start message, of the intents without outcome, of the snapshot before. 0: none. */
  start: count,
  open: v.array(count),
  /** Effects among them that the runner had not come to when it let go: they count as not begun. */
  unstarted: v.optional(v.array(count)),
  previous: count,
  /** Of a session that rests. Unless the session is a copy, it keeps nothing of earlier ones: `previous` is that of the baseline. */
  lean: v.optional(v.literal(true)),
  /** Approvals given and not used yet. */
  approvals: v.array(v.object({ effect: count, digest: Hash })),
  /** The mode then and how often it was changed, and the rules that people gave with decisions (F38). */
  mode: v.object({ value: Mode, revision: count }),
  rules: v.array(Rule),
  /** Seq of the newest Stop; absent: there was none. */
  stopped: v.optional(count),
  /** Seq of the `received` where a copied history ends; absent: the session began here. */
  copied: v.optional(count),
  /** What the guest is. Instead, where it is what it was: the seq of the snapshot entry that says so. */
  agent: v.optional(Agent),
  agent_at: v.optional(count),
})
export type SnapshotEntry = v.InferOutput<typeof SnapshotEntry>

/** What a restore from a snapshot needs. */
export function blobsOfSnapshot({ chain, asks }: SnapshotEntry, { bundle_blob }: Agent): string[] {
  return [...chain, bundle_blob, ...(asks === undefined ? [] : [asks])]
}

/** A git bundle, cut into sealed blobs. Unbundling all packs in order yields `state`, or else `commit`. */
export const Pack = v.object({ blobs: v.array(Hash), bytes: count })

export const CheckpointEntry = v.object({
  /**
   * `folder`: a workspace without git; it has neither head nor branch. `virtual`: files that live in the session; `commit` and
   * `tree` are the digest of all of them, and a pack is what changed since the one before (runner/src/virtual/pack.ts).
   */
  kind: v.picklist(['git', 'folder', 'virtual']),
  /** The commit that holds the work tree, untracked files included; `tree` is all files, carried ones included. */
  commit: v.string(),
  tree: v.string(),
  /** HEAD of the session's branch, whose parent history the commit stands on. Empty: no commit yet. */
  head: v.string(),
  branch: v.string(),
  /** Commit of what is staged, under way or beside the files (runner/src/workspace/extras.ts). */
  state: v.optional(v.string()),
  /** The person's settings where the session began, for machines without a clone of theirs. */
  settings: v.optional(v.object({ carry: v.array(v.string()), setup: v.optional(v.string()) })),
  packs: v.array(Pack),
})
export type CheckpointEntry = v.InferOutput<typeof CheckpointEntry>

/** `effect` numbers what the guest emitted; absent: from the runner (`failed`, `moving`, `arrived`, `notice`, `fallen`, `done`). */
export const EventEntry = v.object({ effect: v.optional(count), type: v.string(), data: json })
export type EventEntry = v.InferOutput<typeof EventEntry>

export const BODIES = {
  received: Received,
  intent: Intent,
  outcome: Outcome,
  snapshot: SnapshotEntry,
  checkpoint: CheckpointEntry,
  event: EventEntry,
} as const

// ---- names ----------------------------------------------------------------------------------------------------------

export const SessionMeta = v.object({
  title: v.string(),
  agent: v.string(),
  mode: Mode,
  workspace: v.string(),
})
export type SessionMeta = v.InferOutput<typeof SessionMeta>

export const RunnerAbout = v.object({
  name: v.string(),
  pools: v.array(v.string()),
  platform: v.string(),
  /** `rehearsal`: the built-in scripted model, because no key is configured. */
  model: v.picklist(['anthropic', 'rehearsal']),
  /** Models that a person may choose from, the default first. */
  models: v.optional(v.array(v.string())),
  workspaces: v.array(v.object({ path: v.string(), name: v.string(), branch: v.optional(v.string()) })),
  /** Sessions whose home this runner is, and which went on elsewhere while it slept or was cut off: they can be brought home. */
  away: v.optional(v.array(Id)),
})
export type RunnerAbout = v.InferOutput<typeof RunnerAbout>

export const DeviceAbout = v.object({
  name: v.string(),
  kind: v.picklist(['phone', 'browser', 'laptop', 'cloud', 'cli']),
})
export type DeviceAbout = v.InferOutput<typeof DeviceAbout>

/**
 * What comes out of a running effect so far, as a `delta` carries it: partial text of a model call, or the newest output of a tool.
 * `thought`: the newest that a model thinks, while it thinks and says nothing.
 */
export const Delta = v.object({ text: v.string(), thought: v.optional(v.string()) })
export type Delta = v.InferOutput<typeof Delta>

export type { LlmResult, ToolResult, Status }
