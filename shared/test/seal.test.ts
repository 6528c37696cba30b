import { describe, expect, it } from 'vitest'
import { fromBase64, toBase64 } from '../src/bytes.ts'
import { open, openJson, place, seal, sealJson } from '../src/seal.ts'

const key = new Uint8Array(32).fill(7)

describe('sealing', () => {
  it('opens what was sealed for the same place', () => {
    const where = place.entry('sid', 'event', 3)
    expect(openJson(key, sealJson(key, { a: [1, 'ü'] }, where), where)).toEqual({ a: [1, 'ü'] })
  })

  it('I9: refuses a box that was moved to another session, kind, or seq', () => {
    const box = sealJson(key, 'secret', place.entry('sid', 'event', 3))
    for (const where of [
      place.entry('sid', 'event', 4),
      place.entry('sid', 'intent', 3),
      place.entry('other', 'event', 3),
      place.command('sid', 'event', '3'),
    ]) {
      expect(() => openJson(key, box, where)).toThrow(expect.objectContaining({ code: 'cannot-open' }))
    }
  })

  it('refuses a box with any bit changed, a short one, and text that is no box', () => {
    const where = place.blob('sid')
    const box = seal(key, new Uint8Array([1, 2, 3]), where)
    for (let i = 0; i < box.length; i++) {
      const changed = box.slice()
      changed[i] = (changed[i] ?? 0) ^ 1
      expect(() => open(key, changed, where)).toThrow(expect.objectContaining({ code: 'cannot-open' }))
    }
    expect(() => open(key, box.subarray(0, 20), where)).toThrow(
      expect.objectContaining({ code: 'cannot-open' }),
    )
    expect(() => openJson(key, '!', where)).toThrow(expect.objectContaining({ code: 'cannot-open' }))
  })

  it('F50: carries NUL and lone surrogates exactly', () => {
    const text = 'a\0b\ud800c\udfff\u2028'
    const where = place.blob('sid')
    expect(openJson(key, sealJson(key, text, where), where)).toBe(text)
  })

  it('never seals the same twice alike', () => {
    expect(sealJson(key, 'x', 'w')).not.toBe(sealJson(key, 'x', 'w'))
  })
})

describe('base64url', () => {
  it('is the inverse of itself for every length', () => {
    for (let length = 0; length < 70; length++) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 37 + length) & 255)
      expect(fromBase64(toBase64(bytes))).toEqual(bytes)
    }
  })

  it('carries a megabyte', () => {
    const bytes = new Uint8Array(1 << 20).fill(251)
    expect(fromBase64(toBase64(bytes)).every((byte) => byte === 251)).toBe(true)
  })

  it('refuses padding and the other alphabet', () => {
    for (const text of ['YQ==', 'a+b/', 'a b']) expect(() => fromBase64(text)).toThrow(TypeError)
  })
})
