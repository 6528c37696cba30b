/** What is not a WebSocket: blobs, pairing, health, and the PWA itself. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import fastifyStatic from '@fastify/static'
import { BatonError, ERRORS } from '@baton/shared/errors.ts'
import { Hash, Id, LIMITS, PairRequest } from '@baton/shared/protocol.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import * as v from 'valibot'
import { parse } from './asks.ts'
import type { Context } from './context.ts'
import { accountKeys, blobKey, engineKey, pairingKey, sessionKeys } from './keys.ts'
import { run } from './scripts.ts'
import { checkToken, type Identity } from './sign-in.ts'
import { storeErrorOf } from './store.ts'

/** The PWA loads nothing from anywhere else and can't be framed. `connect-src` covers fetch and the WebSocket. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}

const BlobPath = v.object({ sid: Id, hash: Hash })
const EnginePath = v.object({ name: Hash })

export async function addHttp(app: FastifyInstance, context: Context): Promise<void> {
  app.addHook('onSend', async (_request, reply) => {
    reply.headers(SECURITY_HEADERS)
  })
  app.setErrorHandler((error, _request, reply) => {
    const { code, message } = answerOf(context, error)
    return reply.code(ERRORS[code].status).send({ code, message })
  })
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body)
  })
  addBlobs(app, context)
  addEngines(app, context)
  addPairing(app, context)
  addHealth(app, context)
  await addClient(app, context)
}

function answerOf(context: Context, error: unknown): Pick<BatonError, 'code'> & { message: string } {
  const known = error instanceof BatonError ? error : storeErrorOf(error)
  if (known) return { code: known.code, message: known.detail }
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413) return { code: 'too-large', message: '' }
  if (typeof status === 'number' && status < 500) return { code: 'bad-frame', message: '' }
  context.log.error({ err: error instanceof Error ? error.stack : String(error) }, 'internal error')
  return { code: 'internal', message: '' }
}

function addBlobs(app: FastifyInstance, context: Context): void {
  const { redis, usage, disk, options } = context
  const identities = new WeakMap<FastifyRequest, Identity>()

  async function signIn(request: FastifyRequest): Promise<Identity> {
    const identity = await identityOf(context, request)
    identities.set(request, identity)
    return identity
  }

  app.put(
    '/blobs/:sid/:hash',
    {
      bodyLimit: options.limits.blob_bytes,
      // Before the body is read.
      onRequest: async (request) => {
        const { account } = await signIn(request)
        usage.check(account)
        disk.check()
      },
    },
    async (request, reply) => {
      const { sid, hash } = parse(BlobPath, request.params, 'blob')
      const bytes = request.body
      if (!Buffer.isBuffer(bytes)) throw new BatonError('bad-frame', '(application/octet-stream expected)')
      if (createHash('sha256').update(bytes).digest('hex') !== hash) throw new BatonError('bad-blob')
      const { account } = identities.get(request) as Identity
      const { state, blobs } = sessionKeys(sid)
      const [code] = await run(
        redis,
        'put-blob',
        { state, blobs, blob: blobKey(sid, hash) },
        { account, hash, size: bytes.length, bytes },
      )
      if (code === 'no-session') throw new BatonError(code)
      if (code === 'stored') usage.add(account, bytes.length)
      return reply.code(201).send({})
    },
  )

  app.get(
    '/blobs/:sid/:hash',
    { onRequest: async (request) => void (await signIn(request)) },
    async (request, reply) => {
      const { sid, hash } = parse(BlobPath, request.params, 'blob')
      const { account } = identities.get(request) as Identity
      const [owner, bytes] = await Promise.all([
        redis.hget(sessionKeys(sid).state, 'account'),
        redis.getBuffer(blobKey(sid, hash)),
      ])
      if (owner !== account) throw new BatonError('no-session')
      if (bytes === null) throw new BatonError('no-blob', `(${hash.slice(0, 12)})`)
      return reply
        .type('application/octet-stream')
        .header('cache-control', 'private, max-age=31536000, immutable')
        .send(bytes)
    },
  )
}

async function identityOf({ redis }: Context, request: FastifyRequest): Promise<Identity> {
  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1]
  if (token === undefined) throw new BatonError('not-signed-in')
  return checkToken(redis, token)
}

/** What sessions run on, by names that only the account can make. Stored once, never forgotten, few. */
function addEngines(app: FastifyInstance, context: Context): void {
  const { redis, usage, disk } = context
  app.put(
    '/engines/:name',
    {
      bodyLimit: LIMITS.engine_bytes,
      onRequest: async (request) => {
        usage.check((await identityOf(context, request)).account)
        disk.check()
      },
    },
    async (request, reply) => {
      const { name } = parse(EnginePath, request.params, 'engine')
      const bytes = request.body
      if (!Buffer.isBuffer(bytes)) throw new BatonError('bad-frame', '(application/octet-stream expected)')
      const { account } = await identityOf(context, request)
      const [code] = await run(
        redis,
        'put-engine',
        { engines: accountKeys(account).engines, engine: engineKey(account, name) },
        { name, size: bytes.length, engines_max: LIMITS.engines, bytes },
      )
      if (code === 'storage-limit') throw new BatonError(code, `(${LIMITS.engines} engines)`)
      return reply.code(201).send({})
    },
  )
  app.get('/engines/:name', async (request, reply) => {
    const { account } = await identityOf(context, request)
    const { name } = parse(EnginePath, request.params, 'engine')
    const bytes = await redis.getBuffer(engineKey(account, name))
    if (bytes === null) throw new BatonError('no-blob', `(${name.slice(0, 12)})`)
    return reply.type('application/octet-stream').header('cache-control', 'no-store').send(bytes)
  })
}

function addPairing(app: FastifyInstance, { redis, pairings }: Context): void {
  app.post('/pair', { bodyLimit: 1024 }, async (request, reply) => {
    if (!pairings.take(request.ip, Date.now())) throw new BatonError('too-fast')
    const { offer } = parse(PairRequest, request.body, 'pair')
    const box = await redis.getdel(pairingKey(offer))
    if (box === null) throw new BatonError('link-expired')
    return reply.header('cache-control', 'no-store').send({ box })
  })
}

function addHealth(app: FastifyInstance, { redis, store, options }: Context): void {
  app.get('/healthz', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    if (!options.isUp()) return reply.code(503).send({ status: 'starting' })
    await redis.ping()
    return { status: 'ok', store: await store.id() }
  })
}

/** The PWA: hashed files for ever, the rest asked for anew; any other page is its first page. */
async function addClient(app: FastifyInstance, { options, log }: Context): Promise<void> {
  const { clientDir } = options
  const isBuilt = clientDir !== undefined && existsSync(join(clientDir, 'index.html'))
  if (isBuilt) {
    await app.register(fastifyStatic, {
      root: clientDir,
      cacheControl: false,
      setHeaders: (reply, path) => {
        const isHashed = path.slice(clientDir.length).replaceAll('\\', '/').startsWith('/assets/')
        reply.header('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
      },
    })
  } else if (clientDir !== undefined) log.warn({ clientDir }, 'the client is not built: no pages are served')
  app.setNotFoundHandler((request, reply) => notFound(request, reply, isBuilt))
}

function notFound(request: FastifyRequest, reply: FastifyReply, hasClient: boolean): FastifyReply {
  const wantsPage = request.method === 'GET' && (request.headers.accept ?? '').includes('text/html')
  if (hasClient && wantsPage) return reply.header('cache-control', 'no-cache').sendFile('index.html')
  return reply.code(404).send({ code: 'unknown-message', message: `(${request.method} of an unknown path)` })
}
