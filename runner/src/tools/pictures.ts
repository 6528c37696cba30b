/** Pictures that a model can be shown: told by their first bytes, whatever the name says, and bounded as the models bound them. */
import { Refusal } from './define.ts'
import type { Picture } from './tool.ts'

/** As base64 they are a third longer, and 5 MB of that are allowed. */
export const PICTURE_BYTES = 3_750_000
const SIDE_MAX = 8_000

interface Size {
  width: number
  height: number
}

/** The kind of a picture, undefined when it is none that models read. */
export function pictureType(bytes: Buffer): Picture['media_type'] | undefined {
  if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))) return 'image/png'
  if (bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex'))) return 'image/jpeg'
  if (/^GIF8[79]a/.test(bytes.toString('latin1', 0, 6))) return 'image/gif'
  if (/^RIFF[^]{4}WEBP/.test(bytes.toString('latin1', 0, 12))) return 'image/webp'
  return undefined
}

/** Throws Refusal for a picture that is too large or damaged. `shown`: its name in the message. */
export function pictureOf(bytes: Buffer, media_type: Picture['media_type'], shown: string): Picture & Size {
  if (bytes.length > PICTURE_BYTES) {
    const size = `${(bytes.length / 1e6).toFixed(1)} MB`
    const todo = `At most ${PICTURE_BYTES / 1e6} MB can be shown: make a smaller copy with bash.`
    throw new Refusal(`${shown} is a picture of ${size}. ${todo}`, 'too-large')
  }
  const size = sizeOf(bytes, media_type)
  if (!size || size.width === 0 || size.height === 0)
    throw new Refusal(`${shown} begins like a picture (${media_type}) but is damaged.`)
  if (Math.max(size.width, size.height) > SIDE_MAX) {
    const todo = `At most ${SIDE_MAX} on each side can be shown: make a smaller copy with bash.`
    throw new Refusal(`${shown} has ${size.width} × ${size.height} pixels. ${todo}`, 'too-large')
  }
  return { media_type, bytes, ...size }
}

function sizeOf(bytes: Buffer, media_type: Picture['media_type']): Size | undefined {
  try {
    switch (media_type) {
      case 'image/png':
        return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
      case 'image/gif':
        return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
      case 'image/jpeg':
        return jpegSize(bytes)
      case 'image/webp':
        return webpSize(bytes)
    }
  } catch {
    // It ends before its size is told.
    return undefined
  }
}

/** Segments up to the frame header: FF, marker, length, and in SOFn precision, height, width. */
function jpegSize(bytes: Buffer): Size | undefined {
  for (let at = 2; ;) {
    if (bytes.readUInt8(at) !== 0xff) return undefined
    const marker = bytes.readUInt8(at + 1)
    if (marker === 0xff) {
      at++
      continue
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    at += 2 + bytes.readUInt16BE(at + 2)
  }
}

function webpSize(bytes: Buffer): Size | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const packed = bytes.readUInt32LE(21)
      return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}
