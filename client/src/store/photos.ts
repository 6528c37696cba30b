/** Pictures that a person attaches: which can go, and how large. Pure; parts/photos/prepare.ts reads them. */
import type { ImageRef } from '@baton/shared/guest.ts'
import { open, place } from '@baton/shared/seal.ts'
import type { Picture } from './outbox.ts'

/** A picture as it goes. */
export interface Photo {
  media_type: ImageRef['media_type']
  bytes: Uint8Array
}

/** What a prompt can carry. */
export const PHOTOS_MAX = 20
/** Longer sides cost the model tokens and show it nothing more. */
export const SIDE_PX_MAX = 1568
/** The model's service takes 5 MB as base64, which adds a third. */
export const BYTES_MAX = 3_500_000

/** Width and height with neither above the limit, the shape kept. Never enlarges. */
export function fitted(width: number, height: number, max = SIDE_PX_MAX): { width: number; height: number } {
  const scale = Math.min(1, max / Math.max(width, height))
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}

/** By its first bytes: a name and the type that a system gives are often wrong. */
export function kindOf(bytes: Uint8Array): 'jpeg' | 'png' | 'gif' | 'webp' | 'heic' | undefined {
  const text = (from: number, to: number): string => String.fromCharCode(...bytes.subarray(from, to))
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return 'jpeg'
  if (text(0, 8) === '\x89PNG\r\n\x1a\n') return 'png'
  if (/^GIF8[79]a$/.test(text(0, 6))) return 'gif'
  if (text(0, 4) === 'RIFF' && text(8, 12) === 'WEBP') return 'webp'
  if (text(4, 8) === 'ftyp' && /^(heic|heix|hevc|heim|heis|mif1|msf1)$/.test(text(8, 12))) return 'heic'
  return undefined
}

/**
 * May the file go as it is? A JPEG never: what a camera writes into it tells where it was taken. Others do when they are small
 * enough; they are drawings and screenshots, which JPEG would blur.
 */
export function goesAsItIs(
  kind: ReturnType<typeof kindOf>,
  { width, height, bytes }: { width: number; height: number; bytes: number },
): ImageRef['media_type'] | undefined {
  if (kind !== 'png' && kind !== 'gif' && kind !== 'webp') return undefined
  return Math.max(width, height) <= SIDE_PX_MAX && bytes <= BYTES_MAX ? `image/${kind}` : undefined
}

/** Pictures of a prompt that was not sent, as they were before they were sealed. */
export function photosOf(pictures: readonly Picture[], key: Uint8Array, sid: string): Photo[] {
  return pictures.map(({ media_type, box }) => ({ media_type, bytes: open(key, box, place.blob(sid)) }))
}

/** Why pictures are refused, and what to do (F66); each reason once. */
export function unreadableWords(
  refused: readonly { name: string; kind: ReturnType<typeof kindOf> }[],
): string[] {
  const [heic, others] = [true, false].map((wanted) =>
    refused.filter(({ kind }) => (kind === 'heic') === wanted).map(({ name }) => name),
  ) as [string[], string[]]
  const [photo, it] = heic.length === 1 ? ['is a HEIC photo', 'it'] : ['are HEIC photos', 'them']
  const picture = others.length === 1 ? 'is not a picture' : 'are not pictures'
  return [
    ...(heic.length === 0
      ? []
      : [
          `${listed(heic)} ${photo}, which this browser can’t read. Share ${it} as JPEG, or take ${it} with the camera set to “most compatible”.`,
        ]),
    ...(others.length === 0
      ? []
      : [`${listed(others)} ${picture} that this browser can read. JPEG, PNG, GIF and WebP are.`]),
  ]
}

/** `a, b and c` */
function listed(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}
