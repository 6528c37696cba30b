/** What an operator tells a relay: by its own flags, which the command line has, too; and what those who use it are told of it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TABLE } from '@baton/runner/cli/table.ts'
import { limits } from '@baton/runner/cli/doctor/relay.ts'
import { saveIdentity, saveRelay } from '@baton/runner/daemon/identity.ts'
import { readFlags } from '@baton/relay/flags.ts'
import { newAccount, newDevice, newId } from '@baton/shared/keys.ts'
import { TestClient } from '../src/client.ts'
import { Ground } from '../src/processes.ts'

let ground: Ground
beforeAll(async () => {
  ground = await Ground.open()
})
afterAll(() => ground.close())

test('every flag of baton relay is one of the relay', () => {
  const values: Record<string, string> = { storage: '8G' }
  for (const [name, { type }] of Object.entries(TABLE.relay.flags)) {
    const value = type === 'boolean' ? [] : [values[name] ?? '20']
    expect(() => readFlags([`--${name}`, ...value], {}), name).not.toThrow()
  }
})

test('limits from the environment hold, and doctor says when an account is at one', async () => {
  const env = { BATON_RELAY_SESSIONS: '1', BATON_RELAY_STORAGE: '64M' }
  const relay = await ground.relay({ by: 'baton', env })
  const account = newAccount()
  const device = newDevice(account)
  const data = await ground.newFolder('machine')
  await saveIdentity(data, { account, device })
  await saveRelay(data, { origin: relay.url })
  await using client = await TestClient.open(relay.url, account)
  const session = () => client.link.ask('create', { sid: newId(), meta: '', place: {} })
  await session()
  await expect(session()).rejects.toMatchObject({ code: 'session-limit' })
  const doctor = await ground.baton(['doctor', '--json', '--data', data])
  await doctor.exit
  const { checks } = JSON.parse(doctor.output) as { checks: { name: string }[] }
  expect(checks.find(({ name }) => name === 'limits')).toMatchObject({
    state: 'problem',
    says: expect.stringMatching(/^1 of 1 sessions, \d+ \w+ of 64\.0 MB stored/) as string,
    todo: expect.stringContaining('baton relay --sessions N') as string,
  })
})

test('doctor warns before a limit is met, and of what', () => {
  const usage = { sessions: 1, sessions_max: 100, bytes: 95, bytes_max: 100, frames_per_s: 500 }
  expect(limits(usage)).toMatchObject({
    state: 'warning',
    todo: expect.stringMatching(/relay --storage SIZE$/) as string,
  })
  expect(limits({ ...usage, bytes: 100 })).toMatchObject({ state: 'problem' })
  expect(limits({ ...usage, bytes: 0 })).toMatchObject({ state: 'ok' })
  expect(limits(undefined)).toMatchObject({ state: 'ok' })
})

test.each([
  [['--storage', 'lots'], {}, /--storage takes a size from 64M to 1024T/],
  [['--sesions', '5'], {}, /There is no flag --sesions here\. Did you mean --sessions\?/],
  [[], { BATON_RELAY_FRAMES: '1' }, /BATON_RELAY_FRAMES takes a whole number from 10 to 100000/],
])('V2: baton relay %j with %j ends with 2 and words', async (args, env, words) => {
  const started = await ground.baton(['relay', '--port', '0', ...args], { env })
  expect((await started.exit).code).toBe(2)
  expect(started.output).toMatch(words)
  expect(started.output).not.toMatch(/^\s+at /m)
})
