/** Makes a file a picture that the model takes: decoded by the browser, scaled, as JPEG. Loaded when a person attaches one. */
import { BYTES_MAX, fitted, goesAsItIs, kindOf, unreadableWords, type Photo } from '../store/photos.ts'

/** More than any camera writes; decoding it could end the page. */
const FILE_BYTES_MAX = 60 << 20
const QUALITIES = [0.85, 0.7, 0.5]

/** Those that can go, and why the others can't, in words for the person. */
export async function preparePhotos(files: readonly File[]): Promise<{ read: Photo[]; refused: string[] }> {
  const read: Photo[] = []
  const refused: string[] = []
  const unreadable: { name: string; kind: ReturnType<typeof kindOf> }[] = []
  for (const file of files) {
    try {
      // One after the other: each takes much memory while it is decoded.
      read.push(await preparePhoto(file))
    } catch (error) {
      if (error instanceof Unreadable) unreadable.push({ name: file.name, kind: error.kind })
      else refused.push(error instanceof Error ? error.message : String(error))
    }
  }
  return { read, refused: [...refused, ...unreadableWords(unreadable)] }
}

class Unreadable extends Error {
  readonly kind: ReturnType<typeof kindOf>

  constructor(kind: ReturnType<typeof kindOf>) {
    super('unreadable')
    this.kind = kind
  }
}

/** Throws Unreadable, or Error with words for the person. */
async function preparePhoto(file: File): Promise<Photo> {
  if (file.size > FILE_BYTES_MAX) throw new Error(`${file.name} is too large; the limit is 60 MB.`)
  const bytes = new Uint8Array(await file.arrayBuffer())
  const kind = kindOf(bytes)
  const picture = await decoded(file)
  if (!picture) throw new Unreadable(kind)
  try {
    const { width, height } = picture
    const as = goesAsItIs(kind, { width, height, bytes: bytes.length })
    if (as) return { media_type: as, bytes }
    return { media_type: 'image/jpeg', bytes: await asJpeg(picture, file.name) }
  } finally {
    if ('close' in picture.source) picture.source.close()
  }
}

interface Decoded {
  source: ImageBitmap | HTMLImageElement
  width: number
  height: number
}

async function decoded(file: Blob): Promise<Decoded | undefined> {
  try {
    const source = await createImageBitmap(file, { imageOrientation: 'from-image' })
    return { source, width: source.width, height: source.height }
  } catch {
    return await decodedByElement(file)
  }
}

/** Safari shows HEIC in an image before it makes a bitmap of it. */
async function decodedByElement(file: Blob): Promise<Decoded | undefined> {
  const url = URL.createObjectURL(file)
  try {
    const source = new Image()
    source.src = url
    await source.decode()
    return { source, width: source.naturalWidth, height: source.naturalHeight }
  } catch {
    return undefined
  } finally {
    URL.revokeObjectURL(url)
  }
}

async function asJpeg({ source, ...size }: Decoded, name: string): Promise<Uint8Array> {
  const { width, height } = fitted(size.width, size.height)
  const canvas = document.createElement('canvas')
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext('2d')
  if (!context) throw new Error(`${name} could not be converted: this browser has no memory for it.`)
  // JPEG knows no transparency; without a ground it would turn black.
  context.fillStyle = '#fff'
  context.fillRect(0, 0, width, height)
  context.drawImage(source, 0, 0, width, height)
  for (const quality of QUALITIES) {
    const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', quality))
    if (blob && blob.size <= BYTES_MAX) return new Uint8Array(await blob.arrayBuffer())
  }
  throw new Error(`${name} could not be converted to JPEG here.`)
}
