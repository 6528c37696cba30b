/**
 * Engines at the relay, once for each account: a session needs the one that it began with, when runners have newer ones. The relay
 * sees neither which engine it is nor what is in it.
 */
import { refusalOf } from './blobs.ts'
import { sha256Hex } from './bytes.ts'
import { BatonError } from './errors.ts'
import { accountKey, engineName, type Account } from './keys.ts'
import { deflate, inflate } from './pack.ts'
import { open, place, seal } from './seal.ts'

export interface EngineStore {
  /** Stores it unless it is there. Throws BatonError `storage-limit`, `offline`. */
  put(engine: Uint8Array): Promise<void>
  /** By its hex SHA-256, which is checked. Throws BatonError `no-blob`, `bad-blob`, `cannot-open`, `offline`. */
  get(hash: string): Promise<Uint8Array>
}

const REQUEST_MS = 60_000

/** `token` as for httpBlobs. */
export function httpEngines(origin: string, token: () => string, account: Account): EngineStore {
  const key = accountKey(account)

  async function request(method: 'HEAD' | 'GET' | 'PUT', name: string, body?: Uint8Array): Promise<Response> {
    try {
      return await fetch(`${origin}/engines/${name}`, {
        method,
        signal: AbortSignal.timeout(REQUEST_MS),
        headers: { authorization: `Bearer ${token()}`, 'content-type': 'application/octet-stream' },
        ...(body ? { body: body as Uint8Array<ArrayBuffer> } : {}),
      })
    } catch (cause) {
      throw cause instanceof BatonError ? cause : new BatonError('offline', '', { cause })
    }
  }

  return {
    async put(engine) {
      const name = engineName(account, sha256Hex(engine))
      if ((await request('HEAD', name)).ok) return
      const response = await request('PUT', name, seal(key, await deflate(engine), place.engine(name)))
      if (!response.ok) throw await refusalOf(response)
    },
    async get(hash) {
      const name = engineName(account, hash)
      const response = await request('GET', name)
      if (!response.ok) throw await refusalOf(response)
      const packed = open(key, new Uint8Array(await response.arrayBuffer()), place.engine(name))
      const engine = await inflate(packed)
      if (sha256Hex(engine) !== hash) throw new BatonError('bad-blob', `(engine ${hash.slice(0, 12)})`)
      return engine
    },
  }
}
