/** Blobs at the relay: sealed bytes, named by the hex SHA-256 of what is stored. */
import { sha256Hex } from './bytes.ts'
import { BatonError, isErrorCode } from './errors.ts'
import { open, place, seal } from './seal.ts'

export interface BlobStore {
  /** Seals and stores; resolves with the hash once the relay has confirmed it. */
  put(sid: string, key: Uint8Array, plain: Uint8Array): Promise<string>
  /** Fetches, checks the hash, opens. Throws BatonError `no-blob`, `bad-blob`, `cannot-open`, `offline`. */
  get(sid: string, key: Uint8Array, hash: string): Promise<Uint8Array>
}

/** A blob as it is stored: sealed for its session, and its name. */
export interface BlobBox {
  hash: string
  box: Uint8Array
}

export function sealBlob(sid: string, key: Uint8Array, plain: Uint8Array): BlobBox {
  const box = seal(key, plain, place.blob(sid))
  return { hash: sha256Hex(box), box }
}

export interface HttpBlobs extends BlobStore {
  /** Stores what was sealed before; again is harmless. Throws BatonError, as `put`. */
  putBox(sid: string, blob: BlobBox): Promise<void>
}

const REQUEST_MS = 60_000

/** Blobs over HTTP beside a signed-in connection. `token` gives the present one, or throws `offline`. */
export function httpBlobs(origin: string, token: () => string): HttpBlobs {
  const url = (sid: string, hash: string): string => `${origin}/blobs/${sid}/${hash}`

  async function request(
    method: 'GET' | 'PUT',
    sid: string,
    hash: string,
    body?: Uint8Array,
  ): Promise<Response> {
    let response: Response
    try {
      response = await fetch(url(sid, hash), {
        method,
        // A connection that died in the middle must not hold anybody up for ever.
        signal: AbortSignal.timeout(REQUEST_MS),
        headers: { authorization: `Bearer ${token()}`, 'content-type': 'application/octet-stream' },
        ...(body ? { body: body as Uint8Array<ArrayBuffer> } : {}),
      })
    } catch (cause) {
      throw cause instanceof BatonError ? cause : new BatonError('offline', '', { cause })
    }
    if (!response.ok) throw await refusalOf(response)
    return response
  }

  return {
    async put(sid, key, plain) {
      const { hash, box } = sealBlob(sid, key, plain)
      await request('PUT', sid, hash, box)
      return hash
    },
    async putBox(sid, { hash, box }) {
      await request('PUT', sid, hash, box)
    },
    async get(sid, key, hash) {
      const response = await request('GET', sid, hash)
      const box = new Uint8Array(await response.arrayBuffer())
      if (sha256Hex(box) !== hash) throw new BatonError('bad-blob', `(${hash.slice(0, 12)})`)
      return open(key, box, place.blob(sid))
    },
  }
}

/** The coded error of a refused HTTP request: the relay answers `{code, message}`. */
export async function refusalOf(response: Response): Promise<BatonError> {
  const answer = (await response.json().catch(() => ({}))) as { code?: unknown; message?: unknown }
  const code = typeof answer.code === 'string' && isErrorCode(answer.code) ? answer.code : 'internal'
  return new BatonError(
    code,
    typeof answer.message === 'string' ? answer.message : `(HTTP ${response.status})`,
  )
}
