import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { fromHex, sha256Hex, toBase64, utf8 } from '@baton/shared/bytes.ts'
import { DICTIONARY, expand } from '@baton/shared/compact.ts'
import type { Json } from '@baton/shared/guest.ts'
import { openJson, seal, sealJson } from '@baton/shared/seal.ts'
import { compact } from '../src/session/compact.ts'

const hash = (n: number): string => sha256Hex(String(n))
const intent = {
  ...{ effect: 8, kind: 'tool', replay: 'safe', digest: hash(1), attempt: 1, now: 1796075115834 },
  tool: { name: 'read', input: { path: 'README.md' }, call: 'toolu_1_1' },
}

describe('the compact form of a body', () => {
  const key = new Uint8Array(32).fill(7)

  it('J15, F50: opens to the same value, whatever is in it', () => {
    const values: Json[] = [
      intent,
      {},
      { text: 'a\0b\u0001c\ud800d\udfff\u2028 ü 🎉' },
      // Hashes in text, alone, more than have room, beside what only looks like one.
      { text: `"${hash(1)}" ${hash(2)}`, alone: hash(3), upper: hash(4).toUpperCase(), long: `${hash(5)}0` },
      { many: Array.from({ length: 400 }, (_, i) => hash(i)) },
      { [hash(6)]: hash(6), text: 'said again and again, '.repeat(3000) },
      { digest: JSON.stringify({ digest: hash(7) }) },
    ]
    for (const value of values) {
      expect(JSON.parse(expand(compact(value)))).toEqual(value)
      expect(openJson(key, toBase64(seal(key, compact(value), 'w')), 'w')).toEqual(value)
      // As it was written before.
      expect(openJson(key, sealJson(key, value, 'w'), 'w')).toEqual(value)
    }
  })

  it('is less than half as long for what bodies usually are, and never longer', () => {
    const length = utf8(JSON.stringify(intent)).length
    expect(compact(intent).length).toBeLessThan(length / 2)
    expect(compact({ a: 1 })).toEqual(utf8('{"a":1}'))
  })

  it('J15: what was written once stays readable: the dictionary is the one that it was', () => {
    expect(sha256Hex(DICTIONARY)).toBe('cfb9467353b5a9c5ddf5b5f01b8b50163f9a87e66234b7306942ecb1d00a0fad')
    expect(
      expand(
        fromHex(
          '01016b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b4338c1026730a14707238e6032333037353434b53036c10830503982a5a40b727574f175d5cb4d0105164af818c683020800',
        ),
      ),
    ).toBe(JSON.stringify(intent))
  })

  it('a damaged one is refused, not half read', () => {
    const box = (bytes: Uint8Array): string => toBase64(seal(key, bytes, 'w'))
    const whole = compact(intent)
    const foreign = Uint8Array.from([1, 0, ...deflateRawSync('not JSON')])
    for (const bytes of [whole.subarray(0, -3), whole.subarray(0, 1), foreign, utf8('{')]) {
      expect(() => openJson(key, box(bytes), 'w')).toThrow(expect.objectContaining({ code: 'cannot-open' }))
    }
  })
})
