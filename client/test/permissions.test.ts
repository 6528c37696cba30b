import { callDigest } from '@baton/shared/digest.ts'
import { openCommand } from '@baton/shared/entries.ts'
import { newAccount, newDevice, sessionKey, verifyDecision, verifyMode } from '@baton/shared/keys.ts'
import type { Command } from '@baton/shared/protocol.ts'
import { describe, expect, test } from 'vitest'
import { decision, mode } from '../src/net/commands.ts'
import type { NewOutboxItem } from '../src/store/outbox.ts'
import { alwaysOf, ruleWords } from '../src/store/rule-words.ts'

const account = newAccount()
const device = newDevice(account)
const sid = 's'.repeat(22)
const key = sessionKey(account, sid)

function sent<K extends Command['kind']>({ id, ask }: NewOutboxItem, kind: K) {
  const body = ask.what === 'command' ? ask.body : ''
  return openCommand(key, sid, { id, n: 1, kind, body, device: device.id, at: 0 })
}

const bash = (command: string) => ({ name: 'bash', input: { command } })

describe('“always for this session”', () => {
  test('C20: says in words what would be allowed from then on', () => {
    const words = (call: ReturnType<typeof bash>): string => {
      const always = alwaysOf(call, 'run', [])
      return always && 'words' in always ? always.words : ''
    }
    expect(words(bash('npm test -- --run prices'))).toBe('every `npm test …`')
    expect(words(bash('ls -la'))).toBe('every `ls …`')
    expect(ruleWords({ tool: 'edit', action: 'allow' })).toBe('every `edit`')
    expect(ruleWords({ tool: 'edit', prefix: 'src', action: 'allow' })).toBe('every `edit` under `src`')
  })

  test('C20: where no rule is safe, or one of the configuration asks each time, it says why instead', () => {
    expect(alwaysOf(bash('npm test && rm -r build'), 'run', [])).toHaveProperty('reason')
    expect(alwaysOf(bash('$(cat command)'), 'run', [])).toHaveProperty('reason')
    const asks = [{ tool: 'bash', prefix: 'git push', action: 'ask' as const }]
    expect(alwaysOf(bash('git push origin main'), 'run', asks)).toEqual({
      reason: 'No “always”: a rule asks for this each time.',
    })
  })

  test('C20: a call of the agent’s own has none', () => {
    expect(alwaysOf({ name: 'propose_plan', input: { plan: 'a' } }, undefined, [])).toBeUndefined()
  })

  test('I10, C20: the rule is under the signature', () => {
    const call = bash('npm test')
    const approval = { effect: 7, at: 0, ...call, digest: callDigest(call.name, call.input) }
    const rule = { tool: 'bash', prefix: 'npm test', action: 'allow' as const }
    const { always, signature, digest } = sent(decision(key, device, sid, approval, true, rule), 'decision')
    expect(always).toEqual(rule)
    const binding = { sid, effect: 7, digest, approved: true }
    expect(verifyDecision(device.id, { ...binding, always: rule }, signature)).toBe(true)
    expect(verifyDecision(device.id, { ...binding, always: { ...rule, prefix: 'npm' } }, signature)).toBe(
      false,
    )
    expect(verifyDecision(device.id, binding, signature)).toBe(false)
  })
})

test('F38, C19: a change of mode is signed with the number of changes before it', () => {
  const { signature, ...body } = sent(mode(key, device, sid, 'edit', 2), 'mode')
  expect(body).toMatchObject({ mode: 'edit', revision: 2, device: device.id })
  expect(verifyMode(device.id, { sid, revision: 2, mode: 'edit' }, signature)).toBe(true)
  expect(verifyMode(device.id, { sid, revision: 3, mode: 'edit' }, signature)).toBe(false)
  expect(verifyMode(device.id, { sid, revision: 2, mode: 'full' }, signature)).toBe(false)
  expect(body).not.toHaveProperty('plan')
  expect(sent(mode(key, device, sid, 'edit', 2, 9), 'mode')).toMatchObject({ plan: 9 })
})
