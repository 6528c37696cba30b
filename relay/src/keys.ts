/**
 * Every name that the relay uses in Redis. What belongs to a session shares the hash tag `{sid}`, what belongs to an account
 * `{account}`, so that a script only ever meets keys of one slot of a Redis Cluster.
 */

export const sessionKeys = (sid: string) => ({
  /** Hash: account, meta, status, seq, epoch, holder, expires_at, place, next_place, waits_since, … (see lua/create.lua). */
  state: `{${sid}}:state`,
  /** Stream, ids `seq-0`. */
  journal: `{${sid}}:journal`,
  /** Stream, ids `n-0`: commands that wait. */
  inbox: `{${sid}}:inbox`,
  /** Hash: command id → n, kept as long as the session (F21). */
  commands: `{${sid}}:commands`,
  /** Hash: blob hash → bytes. */
  blobs: `{${sid}}:blobs`,
  /** Hash: the newest partial answer of the model, with the effect that it belongs to. */
  partial: `{${sid}}:partial`,
  /** Hash: runner → when the session was last offered to it; and in which round; gone with the claim. */
  offers: `{${sid}}:offers`,
})

/** The bytes of one blob. */
export const blobKey = (sid: string, hash: string): string => `{${sid}}:blob:${hash}`

export const accountKeys = (account: string) => ({
  /** Set of sids. */
  sessions: `{${account}}:sessions`,
  /** Set of device ids. */
  devices: `{${account}}:devices`,
  /** Set of device ids that may not sign in any more. */
  revoked: `{${account}}:revoked`,
  /** Hash: runner → JSON record (presence.ts). */
  runners: `{${account}}:runners`,
  /** Set of sids that have work or a lease; an index, repaired by the sweeper. */
  active: `{${account}}:active`,
  /** Sorted set: sids that have work and no holder, by the time since when they wait; an index, repaired by the sweeper. */
  waiting: `{${account}}:waiting`,
  /** Hash: sid → runner that holds its lease; an index, repaired by the sweeper. */
  leases: `{${account}}:leases`,
  /** Integer: bytes stored for the account; an index, repaired by the sweeper. */
  usage: `{${account}}:usage`,
  /** Hash: name of an engine → bytes. */
  engines: `{${account}}:engines`,
})

/** The bytes of one engine. */
export const engineKey = (account: string, name: string): string => `{${account}}:engine:${name}`

/** Hash: body, added_at, seen_at. */
export const deviceKey = (account: string, device: string): string => `{${account}}:device:${device}`

/** String with an expiry: the connection through which a runner is online. */
export const onlineKey = (account: string, device: string): string => `{${account}}:online:${device}`

export const relayKeys = {
  /** String: random id of the relay, named in challenges; all processes of one store share it. */
  relay: 'baton:relay',
  /** String: random id of the store; a new one means that the data is gone (F23). */
  store: 'baton:store',
  /** Set of accounts that are admitted. */
  accounts: 'baton:accounts',
  /** String with an expiry: the process that sweeps at present. */
  sweep: 'baton:sweep',
}

/** String with an expiry: `account device` of an HTTP token, by the token's hash. */
export const tokenKey = (hash: string): string => `baton:token:${hash}`

/** String with an expiry: a pairing's box. */
export const pairingKey = (offer: string): string => `baton:pairing:${offer}`

/** Channel of a session: that its journal grew, and deltas. */
export const sessionChannel = (sid: string): string => `{${sid}}:notices`

/** Channel of an account: changes of sessions, runners and devices; offers, inboxes, revocations. */
export const accountChannel = (account: string): string => `{${account}}:notices`
