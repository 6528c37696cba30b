import { expect, test } from 'vitest'
import { readFlags } from '../src/flags.ts'
import { DEFAULT_LIMITS } from '../src/options.ts'
import { RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

test('told nothing, every limit is the default', () => {
  expect(readFlags([], {}).limits).toEqual(DEFAULT_LIMITS)
})

test('limits are told by flags, else by the environment', () => {
  const env = { BATON_RELAY_SESSIONS: '7', BATON_RELAY_STORAGE: '1.5g', BATON_RELAY_PAIRINGS: '' }
  const args = ['--sessions', '40', '--frames', '50', '--connects', '2', '--accounts', '3']
  const { limits, accounts_max } = readFlags(args, env)
  expect(accounts_max).toBe(3)
  expect(limits).toEqual({
    ...DEFAULT_LIMITS,
    ...{ sessions_per_account: 40, bytes_per_account: 1.5 * 2 ** 30 },
    ...{ frames_per_s: 50, frames_burst: 200, connects_per_s: 2, connects_burst: 40 },
  })
  expect(readFlags([], env).limits.sessions_per_account).toBe(7)
})

test.each([
  [['--sessions', '0'], {}, '--sessions takes a whole number from 1 to 1000000, not "0".'],
  [['--sessions', ''], {}, '--sessions takes a whole number'],
  [['--frames', '1e9'], {}, '--frames takes a whole number from 10 to 100000'],
  [['--storage', '8'], {}, '--storage takes a size from 64M to 1024T, such as 512M, 8G or 2T, not "8".'],
  [['--storage', '1M'], {}, '--storage takes a size'],
  [['--storage', '-8G'], {}, ''],
  [[], { BATON_RELAY_CONNECTS: 'many' }, 'BATON_RELAY_CONNECTS takes a whole number from 1 to 100000'],
  [[], { BATON_RELAY_STORAGE: '9999T' }, 'BATON_RELAY_STORAGE takes a size'],
  [['--limit', '8'], {}, "Unknown option '--limit'"],
])('%j with %j is refused in words', (args, env, words) => {
  expect(() => readFlags(args, env)).toThrow(
    expect.objectContaining({ code: 'usage', message: expect.stringContaining(words) as string }),
  )
})

test('P11, P12: an account is told what it has of what it may have', async () => {
  const relay = await relayForTest(await redisForTest(), {
    sweep_ms: 20,
    limits: { sessions_per_account: 5, bytes_per_account: 1 << 20, frames_per_s: 321 },
  })
  const peer = await RawPeer.signIn(relay)
  const most = { sessions_max: 5, bytes_max: 1 << 20, frames_per_s: 321 }
  expect(await peer.ask('usage', {})).toEqual({ sessions: 0, bytes: 0, ...most })
  const sid = await peer.session()
  await peer.command(sid, { body: 'A'.repeat(4000) })
  const { sessions, bytes } = await until(async () => {
    const told = await peer.ask('usage', {})
    return told.bytes > 0 && told
  }, 'bytes are counted')
  expect(sessions).toBe(1)
  expect(bytes).toBeGreaterThanOrEqual(4000)
  expect(bytes).toBeLessThan(8000)
})
