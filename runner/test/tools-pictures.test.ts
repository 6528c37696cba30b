/** Pictures that read shows. */
import { describe, expect, test } from 'vitest'
import { put, use } from './tools-ground.ts'

describe('pictures', () => {
  const png = (width: number, height: number): Buffer => {
    const bytes = Buffer.alloc(64)
    bytes.write('89504e470d0a1a0a0000000d49484452', 'hex')
    bytes.writeUInt32BE(width, 16)
    bytes.writeUInt32BE(height, 20)
    return bytes
  }
  const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffc0001108001000200301', 'hex')
  const gif = Buffer.from('4749463839610a001400', 'hex')
  const webp = Buffer.from('524946461a000000574542505650384c0d0000002f09c00400', 'hex')

  test.each([
    ['a.png', png(30, 40), 'image/png', 30, 40],
    ['a.txt', jpeg, 'image/jpeg', 32, 16],
    ['a.gif', gif, 'image/gif', 10, 20],
    ['a.webp', webp, 'image/webp', 10, 20],
  ])(
    'T5: %s is shown to the model, whatever its name says',
    async (name, bytes, media_type, width, height) => {
      put(name, bytes)
      expect(await use('read', { path: name })).toEqual({
        text: `${name}: ${media_type}, ${width} × ${height} pixels, ${bytes.length} bytes.`,
        is_error: false,
        images: [{ media_type, bytes }],
        detail: { width, height, bytes: bytes.length },
      })
    },
  )

  test.each([
    [png(8001, 1), '8001 × 1 pixels'],
    [png(0, 1), 'damaged'],
    [jpeg.subarray(0, 12), 'damaged'],
    [Buffer.concat([png(1, 1), Buffer.alloc(4_000_000)]), 'a picture of 4.0'],
  ])('T5: a picture that models do not take is refused in words', async (bytes, words) => {
    put('a.png', bytes)
    const result = await use('read', { path: 'a.png' })
    expect(result).toMatchObject({ is_error: true })
    expect(result.text).toContain(words)
    expect(result.images).toBeUndefined()
  })
})
