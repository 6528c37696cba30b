/** Pictures: kept as sealed blobs of the session; the guest holds only their names, the model gets their bytes. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { ImageRef, Json, Message, ToolResult } from '@baton/shared/guest.ts'
import type { Picture, ToolAnswer } from '../tools/tool.ts'

type Block = Message['content'][number]

/** The session's blobs, under its key. */
export interface SessionBlobs {
  blobs: BlobStore
  sid: string
  key: Uint8Array
}

/** Decoded once per stay on a runner; a conversation repeats its pictures with every request. */
const CACHED_BYTES_MAX = 64 << 20

export class Images {
  readonly #store: SessionBlobs
  readonly #base64 = new Map<string, string>()
  #bytes = 0

  constructor(store: SessionBlobs) {
    this.#store = store
  }

  /** Stores a tool's pictures. Returns its result as the guest sees it, and the blobs that it names. */
  async kept({ images, ...rest }: ToolAnswer): Promise<{ result: ToolResult; blobs: string[] }> {
    if (!images || images.length === 0) return { result: rest, blobs: [] }
    const refs = await Promise.all(images.map((picture) => this.#put(picture)))
    return { result: { ...rest, images: refs }, blobs: refs.map(({ blob }) => blob) }
  }

  /** The same messages with the bytes of their pictures, base64. A picture that can't be had is told to the model in words. */
  async filled(messages: Message[]): Promise<Message[]> {
    if (!messages.some(({ content }) => content.some(hasPicture))) return messages
    return Promise.all(
      messages.map(async (message) => ({
        ...message,
        content: await Promise.all(message.content.map((block) => this.#block(block))),
      })),
    )
  }

  async #block(block: Block): Promise<Block> {
    const ref = refOf(block)
    if (ref) return this.#image(ref)
    const inner = block['content']
    if (!Array.isArray(inner) || !hasPicture(block)) return block
    const blocks = inner.map((item) => (isBlock(item) ? this.#block(item) : Promise.resolve(item)))
    return { ...block, content: await Promise.all(blocks) }
  }

  async #image({ blob, media_type }: ImageRef): Promise<Block> {
    try {
      const data = await this.#data(blob)
      return { type: 'image', source: { type: 'base64', media_type, data } }
    } catch (error) {
      if (!(error instanceof BatonError) || !['no-blob', 'bad-blob', 'cannot-open'].includes(error.code))
        throw error
      return { type: 'text', text: '(A picture was here; it is not stored any more.)' }
    }
  }

  async #data(blob: string): Promise<string> {
    const known = this.#base64.get(blob)
    if (known !== undefined) return known
    const { blobs, sid, key } = this.#store
    const data = Buffer.from(await blobs.get(sid, key, blob)).toString('base64')
    if (this.#bytes + data.length <= CACHED_BYTES_MAX) {
      this.#base64.set(blob, data)
      this.#bytes += data.length
    }
    return data
  }

  async #put({ media_type, bytes }: Picture): Promise<ImageRef> {
    const { blobs, sid, key } = this.#store
    return { blob: await blobs.put(sid, key, bytes), media_type }
  }
}

function hasPicture(block: Block): boolean {
  if (refOf(block)) return true
  const inner = block['content']
  return Array.isArray(inner) && inner.some((item) => isBlock(item) && refOf(item) !== undefined)
}

function isBlock(value: Json): value is Block {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && typeof value['type'] === 'string'
  )
}

function refOf(block: Block): ImageRef | undefined {
  const { type, source } = block
  if (type !== 'image' || typeof source !== 'object' || source === null || Array.isArray(source))
    return undefined
  const { type: kind, blob, media_type } = source
  if (kind !== 'blob' || typeof blob !== 'string') return undefined
  return { blob, media_type: media_type as ImageRef['media_type'] }
}
