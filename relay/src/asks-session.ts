/** What any device may ask about a session. */
import { BatonError } from '@baton/shared/errors.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Handler } from './handler.ts'
import type { Context } from './context.ts'
import { readInbox, readPage } from './journal.ts'
import { accountChannel, accountKeys, sessionKeys } from './keys.ts'
import type { SignedIn } from './peer.ts'
import { run } from './scripts.ts'
import { readState, type SessionState } from './sessions.ts'

/** Throws BatonError `no-session`, also for a session of another account: its existence is nobody else's business. */
async function stateOf({ redis }: Context, peer: SignedIn, sid: string): Promise<SessionState> {
  const state = await readState(redis, sid)
  if (state?.account !== peer.identity.account) throw new BatonError('no-session')
  return state
}

const create: Handler<'create'> = async (context, peer, { sid, meta, place }) => {
  const { redis, usage, disk, options } = context
  const { account } = peer.identity
  const { sessions } = accountKeys(account)
  usage.check(account)
  disk.check()
  const limit = options.limits.sessions_per_account
  const [known, count] = await Promise.all([redis.sismember(sessions, sid), redis.scard(sessions)])
  if (known === 0 && count >= limit) throw new BatonError('session-limit', `(${limit})`)
  // Indexed first: a session that nobody can find would be lost, an index entry without a session is only skipped.
  await redis.sadd(sessions, sid)
  const [code] = await run(
    redis,
    'create',
    { state: sessionKeys(sid).state },
    { account, sid, meta, place: JSON.stringify(place), account_channel: accountChannel(account) },
  )
  if (code === 'no-session') {
    await redis.srem(sessions, sid)
    throw new BatonError(code)
  }
  return {}
}

const describe: Handler<'describe'> = async ({ redis, disk }, peer, { sid, meta }) => {
  const { account } = peer.identity
  disk.check()
  const [code] = await run(
    redis,
    'describe',
    { state: sessionKeys(sid).state },
    { account, sid, meta, account_channel: accountChannel(account) },
  )
  if (code !== 'ok') throw new BatonError(code)
  return {}
}

const command: Handler<'command'> = async (context, peer, { sid, id, kind, body, place }) => {
  const { redis, usage, disk, scheduler, options, background } = context
  const { account, device } = peer.identity
  if (place && kind !== 'move') throw new BatonError('bad-frame', '(command.place: goes with move only)')
  // A repeat is answered even where a new command would be refused: it was acknowledged, or may have been.
  const refusal = limitOf(() => {
    usage.check(account)
    disk.check()
  })
  const { state, inbox, commands } = sessionKeys(sid)
  const [code, n] = await run(
    redis,
    'command',
    { state, inbox, commands },
    {
      account,
      sid,
      id,
      kind,
      device,
      body,
      place: place ? JSON.stringify(place) : '',
      inbox_max: refusal ? 0 : options.limits.inbox_commands,
      account_channel: accountChannel(account),
    },
  )
  if (code === 'inbox-full' && refusal) throw refusal
  if (code !== 'ok' && code !== 'repeated') throw new BatonError(code)
  if (code === 'ok') {
    usage.add(account, body.length)
    background(scheduler.changed(account, sid))
  }
  return { n: Number(n), repeated: code === 'repeated' }
}

function limitOf(check: () => void): BatonError | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof BatonError) return error
    throw error
  }
}

const inbox: Handler<'inbox'> = async (context, peer, { sid }) => {
  await stateOf(context, peer, sid)
  const commands = await readInbox(context.redis, sid)
  peer.feeds.get(sid)?.seen(commands.at(-1)?.n ?? 0)
  return { commands }
}

const read: Handler<'read'> = async (context, peer, { sid, from, limit }) => {
  await stateOf(context, peer, sid)
  return readPage(context.redis, sid, from, Math.min(limit ?? LIMITS.read_entries, LIMITS.read_entries))
}

const watch: Handler<'watch'> = async (context, peer, { sid, from }) => {
  await stateOf(context, peer, sid)
  const watcher = await peer.watch(sid, from)
  try {
    const { seq } = await stateOf(context, peer, sid)
    // Reads before it sends, so its first page follows the answer.
    watcher.start()
    return { tail: seq }
  } catch (error) {
    peer.unwatch(sid)
    throw error
  }
}

const unwatch: Handler<'unwatch'> = async (_context, peer, { sid }) => {
  peer.unwatch(sid)
  return {}
}

export const sessionAsks = { create, describe, command, inbox, read, watch, unwatch }
