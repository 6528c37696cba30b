import { constants, deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { inflateRaw } from '@baton/shared/inflate.ts'

const dictionary = new TextEncoder().encode('what is said again and again, and once more; ')

/** A small generator with a seed (mulberry32), so that a failed run can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Noise, words, runs, and all of them mixed. */
function sample(random: () => number): Uint8Array {
  const words = ['again ', 'said ', 'once more; ', 'x', '\n', '0123456789abcdef']
  const parts = Array.from({ length: Math.floor(random() * 60) }, () => {
    const kind = random()
    if (kind < 0.3) return Buffer.from(Array.from({ length: random() * 300 }, () => random() * 256))
    if (kind < 0.9) return Buffer.from(words[Math.floor(random() * words.length)] ?? '')
    return Buffer.alloc(random() * 5000, 7)
  })
  return Buffer.concat(parts)
}

describe('raw DEFLATE', () => {
  it('J15: gives back what zlib packed, in fixed codes and stored, with a dictionary and without', () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const random = randomFrom(seed)
    for (let n = 0; n < 150; n++) {
      const plain = sample(random)
      for (const level of [0, 1, 9]) {
        for (const memLevel of [1, 9]) {
          for (const before of [dictionary, new Uint8Array()]) {
            const packed = deflateRawSync(plain, {
              ...{ level, memLevel, strategy: constants.Z_FIXED },
              ...(before.length > 0 ? { dictionary: before } : {}),
            })
            const same = Buffer.compare(inflateRaw(packed, before), plain) === 0
            expect([seed, n, level, memLevel, same]).toEqual([seed, n, level, memLevel, true])
          }
        }
      }
    }
  })

  it('refuses damaged bytes, and never gives back more than it may', () => {
    const strategy = constants.Z_FIXED
    const packed = deflateRawSync(Buffer.from('said again and again, '.repeat(30)), { strategy, dictionary })
    for (let i = 0; i < packed.length; i++) {
      const cut = (): Uint8Array => inflateRaw(packed.subarray(0, i), dictionary)
      expect(cut).toThrow(RangeError)
      for (let bit = 0; bit < 8; bit++) {
        const changed = Uint8Array.from(packed)
        changed[i] = (changed[i] ?? 0) ^ (1 << bit)
        try {
          inflateRaw(changed, dictionary)
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError)
        }
      }
    }
    const bomb = deflateRawSync(Buffer.alloc(1 << 20), { strategy })
    expect(() => inflateRaw(bomb, new Uint8Array(), 1 << 16)).toThrow(RangeError)
    expect(inflateRaw(bomb, new Uint8Array(), 1 << 21)).toHaveLength(1 << 20)
  })
})
