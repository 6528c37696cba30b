/**
 * The whole language between client, relay and runner. One schema each; types are inferred.
 *
 * A connection is a WebSocket at SOCKET_PATH that carries JSON text frames. The peer (client or runner) says `hello`, the relay answers
 * `challenge`, the peer `proof`, the relay `welcome`. Then the peer may `ask` (each ask gets one `answer` or `refusal` with its
 * number), `tell` (no answer) and `ping`; the relay sends notices. Blobs and pairing go over HTTP beside it:
 *
 *   PUT  /blobs/:sid/:hash   bytes        → 201    needs `authorization: Bearer <welcome.token>`; verified against the hash
 *   GET  /blobs/:sid/:hash   → bytes               likewise
 *   PUT, GET /engines/:name          likewise, for the account: engines that its sessions began with (engines.ts)
 *   POST /pair {offer}       → {box}               no sign-in: gives a pairing out once
 *   GET  /healthz            → {status: 'ok', …}
 *
 * A newer peer's unknown frame is refused by `unknown-message`, never a crash.
 */
import * as v from 'valibot'

export const PROTOCOL = 1

/** Where the relay takes WebSocket connections. */
export const SOCKET_PATH = '/ws'

/** Limits, checked before any work. Bytes count as sent. */
export const LIMITS = {
  frame_bytes: 1 << 20,
  body_bytes: 256 << 10,
  command_bytes: 128 << 10,
  delta_bytes: 256 << 10,
  blob_bytes: 16 << 20,
  engine_bytes: 4 << 20,
  engines: 16,
  append_entries: 64,
  read_entries: 500,
  inbox_commands: 200,
  entry_blobs: 256,
  pairing_ms: 600_000,
} as const

/** Close codes of the WebSocket, in the range that RFC 6455 §7.4.2 leaves to applications. */
export const CLOSE = {
  'bad-frame': 4400,
  'not-signed-in': 4401,
  'device-revoked': 4403,
  timeout: 4408,
  'too-large': 4413,
  'version-mismatch': 4426,
  'too-fast': 4429,
  draining: 4503,
} as const

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const base64 = (max: number) => v.pipe(v.string(), v.maxLength(max), v.regex(/^[A-Za-z0-9_-]*$/))
const key = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{43}$/))
const signature = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{86}$/))
const hash = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
/** Ids of sessions, commands and offers are chosen by devices at random. */
const id = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{8,64}$/))
const tag = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{22}$/))
const body = base64(LIMITS.body_bytes)
const small = base64(16 << 10)

export const Hash = hash
export const Id = id

/**
 * Where a session should run. `prefer`: this runner; `pool`: any runner with the tag. With `pin` nobody else may take it, else
 * any runner of the account with room may while the preferred one is away. A session without a checkpoint can't leave the
 * preferred runner, nor one with files that could not be stored the runner that has them: they exist nowhere else.
 */
export const Placement = v.strictObject({
  prefer: v.optional(key),
  pool: v.optional(tag),
  pin: v.optional(v.boolean()),
})
export type Placement = v.InferOutput<typeof Placement>

/**
 * `running`: has work to do. `waiting`: for a person's decision. `idle`: for a prompt. `moving`: let go for another runner.
 * `done`, `failed`: the agent has ended.
 */
export const Status = v.picklist(['running', 'waiting', 'idle', 'moving', 'done', 'failed'])
export type Status = v.InferOutput<typeof Status>

/** What the relay may know of an entry's meaning: for the session list and for push. */
export const Hint = v.strictObject({
  status: v.optional(Status),
  notify: v.optional(v.boolean()),
  /** The newest files could not be stored: until a checkpoint follows they exist only where the lease is. */
  unstored: v.optional(v.literal(true)),
})
export type Hint = v.InferOutput<typeof Hint>

export const SealedKind = v.picklist(['received', 'intent', 'outcome', 'snapshot', 'checkpoint', 'event'])
export type SealedKind = v.InferOutput<typeof SealedKind>

/** An entry as a runner appends it; `body` is sealed for its place (seal.ts). */
export const NewEntry = v.strictObject({
  kind: SealedKind,
  body,
  blobs: v.pipe(v.array(hash), v.maxLength(LIMITS.entry_blobs)),
  /** Blobs that earlier entries brought and that this one needs, too: they live as long as its own, and are not said again to readers. */
  keeps: v.optional(v.pipe(v.array(hash), v.maxLength(LIMITS.entry_blobs))),
  hint: v.optional(Hint),
  /** `received` only: number and id of the command that leaves the inbox with this write (I6). */
  consumes: v.optional(v.strictObject({ n: count, id })),
})
export type NewEntry = v.InferOutput<typeof NewEntry>

export const LeaseChange = v.picklist(['claimed', 'released', 'expired'])

/** An entry as everybody reads it. `at`: milliseconds on Redis' clock; `size`: bytes of the body before base64. */
export const Entry = v.object({
  seq: count,
  epoch: count,
  kind: v.picklist([...SealedKind.options, 'lease']),
  at: count,
  size: count,
  body,
  blobs: v.array(hash),
  hint: v.optional(Hint),
  consumes: v.optional(v.object({ n: count, id })),
  lease: v.optional(v.object({ change: LeaseChange, holder: key, place: v.optional(Placement) })),
})
export type Entry = v.InferOutput<typeof Entry>

export const CommandKind = v.picklist([
  'start',
  'prompt',
  'decision',
  'stop',
  'move',
  'mode',
  'settings',
  'compact',
  'document',
])
export type CommandKind = v.InferOutput<typeof CommandKind>

/** A command as it waits in a session's inbox. `device`: who sent it, as signed in. */
export const Command = v.object({
  n: count,
  id,
  kind: CommandKind,
  at: count,
  device: key,
  body,
  place: v.optional(Placement),
})
export type Command = v.InferOutput<typeof Command>

export const SessionInfo = v.object({
  sid: id,
  /** Sealed SessionMeta (journal.ts). */
  meta: small,
  status: Status,
  seq: count,
  epoch: count,
  /** The runner that holds the lease; absent: parked. */
  holder: v.optional(key),
  place: Placement,
  /** Commands that wait in the inbox. */
  pending: count,
  created_at: count,
  changed_at: count,
})
export type SessionInfo = v.InferOutput<typeof SessionInfo>

export const RunnerInfo = v.object({
  device: key,
  online: v.boolean(),
  /** When the present connection began, or the last one ended. */
  since: count,
  capacity: count,
  held: count,
  tags: v.array(tag),
  /** Sealed RunnerAbout (journal.ts). */
  body: small,
})
export type RunnerInfo = v.InferOutput<typeof RunnerInfo>

export const DeviceInfo = v.object({
  device: key,
  /** Sealed DeviceAbout (journal.ts). */
  body: small,
  added_at: count,
  seen_at: count,
  revoked: v.boolean(),
})
export type DeviceInfo = v.InferOutput<typeof DeviceInfo>

const nothing = v.strictObject({})
const sidOnly = v.strictObject({ sid: id })
const held = v.strictObject({ sid: id, epoch: count })

/** What a peer may ask, and what it gets. Refusals carry a code of errors.ts. */
export const ASKS = {
  // any device
  /** Everything of the account; from then on `session`, `runner` and `device` notices follow. */
  list: {
    with: nothing,
    gives: v.object({
      sessions: v.array(SessionInfo),
      runners: v.array(RunnerInfo),
      devices: v.array(DeviceInfo),
    }),
  },
  /** Makes a session. The same sid again changes nothing. Refused: session-limit. */
  create: { with: v.strictObject({ sid: id, meta: small, place: Placement }), gives: nothing },
  /** Replaces a session's metadata. */
  describe: { with: v.strictObject({ sid: id, meta: small }), gives: nothing },
  /**
   * Puts a command into the inbox, durably, once per id; the answer to a repeat is the first one's number (I6).
   * `place` goes with `move`: it takes effect at once when nobody holds the session, else when the holder lets go.
   * Refused: inbox-full, session-ended, too-large, no-session.
   */
  command: {
    with: v.strictObject({
      sid: id,
      id,
      kind: CommandKind,
      body: base64(LIMITS.command_bytes),
      place: v.optional(Placement),
    }),
    gives: v.object({ n: count, repeated: v.boolean() }),
  },
  /** Commands that still wait. */
  inbox: { with: sidOnly, gives: v.object({ commands: v.array(Command) }) },
  /** A page of entries from `from` on, and where the journal ends. */
  read: {
    with: v.strictObject({ sid: id, from: count, limit: v.optional(count) }),
    gives: v.object({ entries: v.array(Entry), tail: count }),
  },
  /** Sends entries from `from` on as `entries` notices, then every new one; or one `gap`. */
  watch: { with: v.strictObject({ sid: id, from: count }), gives: v.object({ tail: count }) },
  unwatch: { with: sidOnly, gives: nothing },
  /** Lets a pairing wait for its one taker. */
  pairing: { with: v.strictObject({ offer: tag, box: small }), gives: v.object({ expires_at: count }) },
  revoke: { with: v.strictObject({ device: key }), gives: nothing },
  /** What the account has of what this relay lets it have; bytes may lag behind by a sweep. */
  usage: {
    with: nothing,
    gives: v.object({
      sessions: count,
      sessions_max: count,
      bytes: count,
      bytes_max: count,
      /** Of one connection, in the long run. */
      frames_per_s: count,
    }),
  },
  // runners
  /** Announces a runner; offers follow for as long as the connection lives. */
  serve: {
    with: v.strictObject({
      capacity: count,
      tags: v.pipe(v.array(tag), v.maxLength(16)),
      body: small,
    }),
    gives: nothing,
  },
  /**
   * Takes the lease. `snapshot`, `checkpoint`: seq of the newest such entry, 0 for none. `waited_ms`: since it had work and
   * nobody held it; `moving`: it was let go for another runner. `entries`: what whoever takes a session up reads first, as far
   * as it is small (relay/src/first-reads.ts): in order, with holes. `commands`: those that waited then, all or none of them.
   * Refused: lease-held, placed-elsewhere.
   */
  claim: {
    with: sidOnly,
    gives: v.object({
      epoch: count,
      seq: count,
      snapshot: count,
      checkpoint: count,
      ttl_ms: count,
      place: Placement,
      waited_ms: count,
      /** A person moved it away from the runner that alone has its newest files. */
      left: v.boolean(),
      moving: v.boolean(),
      entries: v.optional(v.array(Entry)),
      commands: v.optional(v.array(Command)),
    }),
  },
  /** Writes entries `first`, first+1, … all or none (I1, I2). Refused: lease-lost, wrong-seq, already-consumed, no-blob. */
  append: {
    with: v.strictObject({
      sid: id,
      epoch: count,
      first: count,
      entries: v.pipe(v.array(NewEntry), v.minLength(1), v.maxLength(LIMITS.append_entries)),
    }),
    gives: v.object({ seq: count, at: count }),
  },
  /** Extends leases; `lost` names those that are no longer held. */
  renew: {
    with: v.strictObject({ leases: v.pipe(v.array(held), v.maxLength(1000)) }),
    gives: v.object({ lost: v.array(id) }),
  },
  /**
   * Gives the lease back. `status` tells the scheduler whether there is work; `place` where to continue; `seen`: commands up
   * to this number, if still in the inbox, are no work: the session waits for something else first.
   */
  release: {
    with: v.strictObject({
      sid: id,
      epoch: count,
      status: Status,
      place: v.optional(Placement),
      seen: v.optional(count),
    }),
    gives: v.object({ seq: count }),
  },
} as const

export type Asks = typeof ASKS
export type AskName = keyof Asks
export type AskWith<N extends AskName> = v.InferOutput<Asks[N]['with']>
export type AskGives<N extends AskName> = v.InferOutput<Asks[N]['gives']>

/** Frames from a peer to the relay. */
export const PeerFrame = v.variant('t', [
  v.strictObject({
    t: v.literal('hello'),
    protocol: count,
    account: key,
    device: key,
    certificate: signature,
    /** Sealed DeviceAbout. */
    body: small,
  }),
  v.strictObject({ t: v.literal('proof'), signature }),
  v.strictObject({ t: v.literal('ping'), n: count }),
  /** `with` is validated against ASKS[what].with. */
  v.strictObject({ t: v.literal('ask'), re: count, what: v.string(), with: v.unknown() }),
  /** The partial answer of a model so far, whole each time; the newest is kept for late joiners and ends with the outcome. */
  v.strictObject({
    t: v.literal('delta'),
    sid: id,
    epoch: count,
    effect: count,
    body: base64(LIMITS.delta_bytes),
  }),
])
export type PeerFrame = v.InferOutput<typeof PeerFrame>

/** Frames from the relay to a peer. */
export const RelayFrame = v.variant('t', [
  v.object({ t: v.literal('challenge'), protocol: count, relay: v.string(), nonce: v.string() }),
  v.object({
    t: v.literal('welcome'),
    /** For HTTP: `authorization: Bearer <token>`. */
    token: v.string(),
    /** Send a ping this often; silence longer than `timeout_ms` (at least twice as much) means a dead connection (F4). */
    heartbeat_ms: count,
    timeout_ms: count,
    /** Identifies the store; a change means that another or an emptied store answers (F23). */
    store: v.string(),
  }),
  v.object({ t: v.literal('pong'), n: count }),
  v.object({ t: v.literal('answer'), re: count, with: v.unknown() }),
  v.object({ t: v.literal('refusal'), re: count, code: v.string(), message: v.string() }),
  v.object({ t: v.literal('entries'), sid: id, entries: v.array(Entry), tail: count }),
  /** What the cursor asks for can't be given: start over from `from` (F3); `rolled-back`: the journal is shorter than the cursor (F23). */
  v.object({
    t: v.literal('gap'),
    sid: id,
    reason: v.picklist(['trimmed', 'rolled-back']),
    from: count,
    tail: count,
  }),
  v.object({ t: v.literal('session'), session: SessionInfo }),
  v.object({ t: v.literal('runner'), runner: RunnerInfo }),
  v.object({ t: v.literal('device'), device: DeviceInfo }),
  v.object({ t: v.literal('delta'), sid: id, effect: count, body: base64(LIMITS.delta_bytes) }),
  /** To a runner: the session has work; claim it if there is room. */
  v.object({ t: v.literal('offer'), sid: id }),
  /** To a runner that is full: so many sessions wait that it could take. Said again, while it is so, with every sweep. */
  v.object({ t: v.literal('crowded'), waiting: count }),
  /** To the holder: a command arrived. */
  v.object({ t: v.literal('inbox'), sid: id, command: Command }),
])
export type RelayFrame = v.InferOutput<typeof RelayFrame>

/** Frames that come by themselves after `welcome`. */
export type Notice = Extract<
  RelayFrame,
  { t: 'entries' | 'gap' | 'session' | 'runner' | 'device' | 'delta' | 'offer' | 'crowded' | 'inbox' }
>

export const PairRequest = v.strictObject({ offer: tag })
export const PairAnswer = v.object({ box: small })
