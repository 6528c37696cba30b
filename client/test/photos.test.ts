import { newAccount, sessionKey } from '@baton/shared/keys.ts'
import { describe, expect, test } from 'vitest'
import { prompt } from '../src/net/commands.ts'
import { BYTES_MAX, fitted, goesAsItIs, kindOf, photosOf, unreadableWords } from '../src/store/photos.ts'

const bytes = (...parts: (string | number)[]): Uint8Array =>
  new Uint8Array(
    parts.flatMap((part) =>
      typeof part === 'number' ? [part] : Array.from({ length: part.length }, (_, i) => part.charCodeAt(i)),
    ),
  )

describe('photos', () => {
  test('C22: no side is longer than 1568 px, the shape is kept, and nothing is enlarged', () => {
    expect(fitted(4032, 3024)).toEqual({ width: 1568, height: 1176 })
    expect(fitted(3024, 4032)).toEqual({ width: 1176, height: 1568 })
    expect(fitted(800, 600)).toEqual({ width: 800, height: 600 })
    expect(fitted(20_000, 3)).toEqual({ width: 1568, height: 1 })
  })

  test('the kind is what the first bytes say', () => {
    expect(kindOf(bytes(0xff, 0xd8, 0xff, 0xe1))).toBe('jpeg')
    expect(kindOf(bytes(0x89, 'PNG\r\n', 0x1a, '\n'))).toBe('png')
    expect(kindOf(bytes('GIF89a'))).toBe('gif')
    expect(kindOf(bytes('RIFF', 1, 2, 3, 4, 'WEBPVP8 '))).toBe('webp')
    expect(kindOf(bytes(0, 0, 0, 24, 'ftypheic', 0, 0, 0, 0))).toBe('heic')
    expect(kindOf(bytes('not a picture'))).toBeUndefined()
    expect(kindOf(bytes())).toBeUndefined()
  })

  test('a camera’s JPEG is always drawn anew, so that where it was taken stays here; a small screenshot goes as it is', () => {
    const small = { width: 800, height: 600, bytes: 1000 }
    expect(goesAsItIs('jpeg', small)).toBeUndefined()
    expect(goesAsItIs('heic', small)).toBeUndefined()
    expect(goesAsItIs('png', small)).toBe('image/png')
    expect(goesAsItIs('png', { ...small, width: 1569 })).toBeUndefined()
    expect(goesAsItIs('gif', { ...small, bytes: BYTES_MAX + 1 })).toBeUndefined()
  })

  test('F66: what can’t be read is refused by name, with what to do', () => {
    const [heic, other] = unreadableWords([
      { name: 'a.bin', kind: undefined },
      { name: 'IMG_1.HEIC', kind: 'heic' },
      { name: 'b.txt', kind: undefined },
      { name: 'c.jpg', kind: 'jpeg' },
    ])
    expect(heic).toMatch(/^IMG_1\.HEIC is a HEIC photo.*Share it as JPEG/)
    expect(other).toMatch(/^a\.bin, b\.txt and c\.jpg are not pictures/)
    expect(unreadableWords([{ name: 'a.bin', kind: undefined }])).toEqual([
      'a.bin is not a picture that this browser can read. JPEG, PNG, GIF and WebP are.',
    ])
  })

  test('a prompt names its pictures by what is stored, and gives them back whole when it is not sent', () => {
    const sid = 's'.repeat(22)
    const key = sessionKey(newAccount(), sid)
    const photo = { media_type: 'image/png' as const, bytes: bytes('some bytes') }
    const item = prompt(key, sid, { text: 'look', photos: [photo] })
    expect(item.pictures).toHaveLength(1)
    expect(photosOf(item.pictures ?? [], key, sid)).toEqual([photo])
    expect(prompt(key, sid, { text: 'look' }).pictures).toBeUndefined()
  })
})
