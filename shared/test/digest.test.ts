import { describe, expect, it } from 'vitest'
import { callDigest, canonicalJson, EMPTY_CONVERSATION, extendConversation } from '../src/digest.ts'

describe('canonical JSON', () => {
  it('does not depend on the order of keys, and on nothing else less', () => {
    expect(canonicalJson({ b: 1, a: { d: [1, 2], c: null } })).toBe('{"a":{"c":null,"d":[1,2]},"b":1}')
    expect(canonicalJson([2, 1])).not.toBe(canonicalJson([1, 2]))
  })

  it('escapes lone surrogates, so that every string has UTF-8', () => {
    expect(canonicalJson('\ud800')).toBe('"\\ud800"')
  })
})

it('I10: the digest of a call changes with its name and with any part of its input', () => {
  const digest = callDigest('bash', { command: 'ls', n: { deep: ['a'] } })
  expect(digest).toMatch(/^[0-9a-f]{64}$/)
  expect(callDigest('bash', { n: { deep: ['a'] }, command: 'ls' })).toBe(digest)
  expect(callDigest('bush', { command: 'ls', n: { deep: ['a'] } })).not.toBe(digest)
  expect(callDigest('bash', { command: 'ls ', n: { deep: ['a'] } })).not.toBe(digest)
  expect(callDigest('bash', { command: 'ls', n: { deep: ['b'] } })).not.toBe(digest)
})

it('the digest of a conversation names all messages and their order', () => {
  const one = { role: 'user' as const, content: [{ type: 'text', text: 'a' }] }
  const two = { role: 'assistant' as const, content: [{ type: 'text', text: 'b' }] }
  const ab = extendConversation(extendConversation(EMPTY_CONVERSATION, one), two)
  const ba = extendConversation(extendConversation(EMPTY_CONVERSATION, two), one)
  expect(ab).not.toBe(ba)
})
