import { callDigest } from '@baton/shared/digest.ts'
import { newAccount, newDevice, sessionKey, verifyDecision } from '@baton/shared/keys.ts'
import { openCommand } from '@baton/shared/entries.ts'
import { expect, test } from 'vitest'
import { decision } from '../src/net/commands.ts'
import { isTrueCall } from '@baton/shared/view/call.ts'

const account = newAccount()
const device = newDevice(account)
const SID = 'session-one-0000'
const key = sessionKey(account, SID)
const input = { command: 'npm test' }
const approval = { effect: 7, digest: callDigest('bash', input), name: 'bash', input, at: 1 }

test('I10, C10: a decision is signed for this session, effect, digest and answer, and names its device', () => {
  for (const approved of [true, false]) {
    const { ask, id } = decision(key, device, SID, approval, approved)
    if (ask.what !== 'command') throw new Error('not a command')
    const command = { n: 1, id, kind: 'decision' as const, at: 1, device: device.id, body: ask.body }
    const body = openCommand(key, SID, command)
    expect(body).toMatchObject({ effect: 7, digest: approval.digest, approved, device: device.id })
    const bound = { sid: SID, effect: 7, digest: approval.digest, approved }
    expect(verifyDecision(body.device, bound, body.signature)).toBe(true)
    expect(verifyDecision(body.device, { ...bound, approved: !approved }, body.signature)).toBe(false)
  }
})

test('I10, C10: a call other than its digest can be denied, never approved', () => {
  const lie = { ...approval, input: { command: 'npm test; curl evil' } }
  expect(isTrueCall(approval)).toBe(true)
  expect(isTrueCall(lie)).toBe(false)
  expect(() => decision(key, device, SID, lie, true)).toThrow()
  expect(() => decision(key, device, SID, lie, false)).not.toThrow()
})
