/** What runners ask: presence, lease, journal. */
import { BatonError } from '@baton/shared/errors.ts'
import type { NewEntry, Placement } from '@baton/shared/protocol.ts'
import { collect } from './collect.ts'
import { firstReads } from './first-reads.ts'
import type { Handler } from './handler.ts'
import { accountChannel, sessionChannel, sessionKeys } from './keys.ts'
import { run } from './scripts.ts'

/** Runners that may still have a session's work tree. */
const HOLDERS_MAX = 4

const serve: Handler<'serve'> = async ({ presence, scheduler, background }, peer, about) => {
  const { account, device } = peer.identity
  await presence.announce(account, device, peer.id, about)
  peer.serving = true
  peer.tags = about.tags
  background(scheduler.offerAll(account))
  return {}
}

const claim: Handler<'claim'> = async ({ redis, scheduler, options, background }, peer, { sid }) => {
  const { account, device } = peer.identity
  const { state, journal, partial, offers } = sessionKeys(sid)
  const ttl_ms = options.lease_ms
  const [code, epoch, seq, snapshot, checkpoint, place, waited_ms, status, left] = await run(
    redis,
    'claim',
    { state, journal, partial, offers },
    {
      account,
      sid,
      device,
      ttl_ms,
      tags: peer.tags.join(' '),
      holders_max: HOLDERS_MAX,
      session_channel: sessionChannel(sid),
      account_channel: accountChannel(account),
    },
  )
  if (code !== 'ok') throw new BatonError(code)
  peer.feeds.delete(sid)
  peer.feed(sid)
  background(scheduler.changed(account, sid))
  const at = { seq: Number(seq), snapshot: Number(snapshot), checkpoint: Number(checkpoint) }
  // The lease is taken: whoever holds it can ask again for what could not be read now.
  const reads = await firstReads(redis, sid, at).catch(() => undefined)
  return {
    ...at,
    ...reads,
    epoch: Number(epoch),
    ttl_ms,
    place: JSON.parse(String(place)) as Placement,
    waited_ms: Number(waited_ms),
    moving: status === 'moving',
    left: left !== '',
  }
}

const append: Handler<'append'> = async (
  { redis, usage, disk, background },
  peer,
  { sid, epoch, first, entries },
) => {
  const { account, device } = peer.identity
  usage.check(account)
  disk.check()
  const { state, journal, inbox, blobs, partial } = sessionKeys(sid)
  const boxes = entries.map(boxOf)
  const [code, value, at] = await run(
    redis,
    'append',
    { state, journal, inbox, blobs, partial },
    {
      account,
      sid,
      device,
      epoch,
      first,
      session_channel: sessionChannel(sid),
      account_channel: accountChannel(account),
      entries: entries.flatMap((one, i) => argsOf(one, boxes[i] as Buffer)),
    },
  )
  switch (code) {
    case 'ok':
    case 'repeated':
      if (entries.some((entry) => entry.kind === 'outcome')) peer.deltas.drop(sid)
      usage.add(
        account,
        boxes.reduce((bytes, box) => bytes + box.length, 0),
      )
      background(collect(redis, usage, { account, sid }, entries, Number(value)))
      return { seq: Number(value), at: Number(at) }
    case 'lease-lost':
      peer.feeds.delete(sid)
      throw new BatonError(code)
    case 'wrong-seq':
      throw new BatonError(code, `(the journal ends at ${value}, the first entry is ${first})`)
    case 'already-consumed':
      throw new BatonError(code, `(command ${value})`)
    case 'no-blob':
      throw new BatonError(code, `(${String(value).slice(0, 12)})`)
    case 'no-session':
      throw new BatonError(code)
  }
}

/** A body as it is stored: a quarter less than the text that carries it. What would be read back as another text is refused (J5). */
function boxOf({ body }: NewEntry): Buffer {
  const box = Buffer.from(body, 'base64url')
  if (box.toString('base64url') !== body)
    throw new BatonError('bad-frame', '(append.entries.body: no base64url)')
  return box
}

/** An entry as append.lua takes it. */
function argsOf(
  { kind, blobs, keeps = [], hint, consumes }: NewEntry,
  box: Buffer,
): (string | number | Buffer)[] {
  if (consumes && kind !== 'received') {
    throw new BatonError('bad-frame', '(append.entries.consumes: goes with received only)')
  }
  const { status = '', ...others } = hint ?? {}
  return [
    kind,
    box,
    blobs.join(' '),
    Object.keys(others).length > 0 ? JSON.stringify(others) : '',
    status,
    consumes?.n ?? '',
    consumes?.id ?? '',
    keeps.join(' '),
  ]
}

const renew: Handler<'renew'> = async ({ redis, options, background }, peer, { leases }) => {
  const { account, device } = peer.identity
  const lost: string[] = []
  await Promise.all(
    leases.map(async ({ sid, epoch }) => {
      const [code, newest] = await run(
        redis,
        'renew',
        { state: sessionKeys(sid).state },
        { account, device, epoch, ttl_ms: options.lease_ms },
      )
      if (code === 'ok') {
        background(peer.feed(sid).pump(Number(newest)))
      } else {
        peer.feeds.delete(sid)
        lost.push(sid)
      }
    }),
  )
  return { lost }
}

const release: Handler<'release'> = async (context, peer, ask) => {
  const { sid, epoch, status, place, seen = 0 } = ask
  const { redis, scheduler, background } = context
  const { account, device } = peer.identity
  const { state, journal, inbox } = sessionKeys(sid)
  const [code, seq] = await run(
    redis,
    'release',
    { state, journal, inbox },
    {
      account,
      sid,
      device,
      epoch,
      status,
      place: place ? JSON.stringify(place) : '',
      seen,
      session_channel: sessionChannel(sid),
      account_channel: accountChannel(account),
    },
  )
  peer.feeds.delete(sid)
  if (code !== 'ok') throw new BatonError(code)
  background(scheduler.changed(account, sid))
  return { seq: Number(seq) }
}

export const runnerAsks = { serve, claim, append, renew, release }
