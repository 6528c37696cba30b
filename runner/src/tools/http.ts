/**
 * One bounded GET. Where it connects to is checked on the addresses that the name was resolved to and that the socket then uses, for
 * every redirect anew, so that a name that resolves differently the second time gains nothing.
 */
import { lookup } from 'node:dns'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import { Refusal } from './define.ts'
import { isAllowed, isPublic } from './addresses.ts'

const REDIRECTS_MAX = 5

export interface Got {
  url: URL
  status: number
  /** As the server says, in small letters and without parameters. */
  type: string
  charset: string | undefined
  bytes: Buffer
  /** There was more than `bytes_max`. */
  cut: boolean
}

export interface GetOptions {
  /** Hosts, or `host:port`, that may be reached although they are not public. */
  allowed: readonly string[]
  bytes_max: number
  accept: string
  signal: AbortSignal
  /** Why a redirect may not be followed there. */
  objectionTo?: ((url: string) => string | undefined) | undefined
}

/** Throws Refusal with what stands against it. */
export async function get(from: string, options: GetOptions): Promise<Got> {
  let url = parseUrl(from)
  for (let redirects = 0; ; redirects++) {
    const response = await send(url, options)
    const { statusCode: status = 0, headers } = response
    if (![301, 302, 303, 307, 308].includes(status) || headers.location === undefined) {
      return {
        url,
        status,
        ...typeOf(headers['content-type']),
        ...(await bodyOf(response, options.bytes_max)),
      }
    }
    response.destroy()
    if (redirects === REDIRECTS_MAX) throw new Refusal(`${from} redirects more than ${REDIRECTS_MAX} times.`)
    url = parseUrl(headers.location, url)
    const objection = options.objectionTo?.(url.href)
    if (objection !== undefined)
      throw new Refusal(`${from} redirects to ${url.href}. ${objection}`, 'not-allowed')
  }
}

/** Throws Refusal for what is no address, and for one that names a closed network. `allowed` absent: not known yet, so it may be open. */
export function reachable(text: string, allowed: readonly string[] | undefined): void {
  const url = parseUrl(text)
  if (allowed && isClosed(url, isAllowed(url, allowed))) throw notPublic(url)
}

/** Only of a literal address; a name is looked up when it is used. */
function isClosed({ hostname }: URL, open: boolean): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) !== 0 && !open && !isPublic(host)
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (!url) throw new Refusal(`${text} is not an address. Give it whole, with https://.`)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Refusal(`Only http and https can be fetched, not ${url.protocol}`)
  if (url.username !== '' || url.password !== '')
    throw new Refusal('The address contains a user name or password. Give it without.')
  return url
}

function send(url: URL, { allowed, accept, signal }: GetOptions): Promise<IncomingMessage> {
  const open = isAllowed(url, allowed)
  // A literal address is not looked up.
  if (isClosed(url, open)) throw notPublic(url)
  const checked: LookupFunction = (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '', 0)
      const usable = open ? found : found.filter(({ address }) => isPublic(address))
      const [first] = usable
      if (!first) return callback(notPublic(url), '', 0)
      if (options.all) callback(null, usable)
      else callback(null, first.address, first.family)
    })
  }
  const headers = {
    accept,
    'accept-encoding': 'gzip, deflate, br',
    'accept-language': 'en, *;q=0.5',
    'user-agent': 'baton-fetch',
  }
  const ask = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const sent = ask(url, { agent: false, lookup: checked, headers, signal })
    sent.once('response', resolve)
    sent.on('error', reject)
    sent.end()
  })
}

function notPublic(url: URL): Refusal {
  const todo = `If it is meant, name ${url.host} in the config under fetch.allow.`
  return new Refusal(`${url.host} is not on the public internet, so it is not fetched. ${todo}`, 'not-public')
}

function typeOf(header = ''): { type: string; charset: string | undefined } {
  const [type = ''] = header.split(';')
  const [, charset] = /charset\s*=\s*"?([^\s";]+)/i.exec(header) ?? []
  return { type: type.trim().toLowerCase(), charset }
}

/** Unpacks while it reads, so that a small body that unpacks to a huge one is cut as well. */
async function bodyOf(
  response: IncomingMessage,
  bytes_max: number,
): Promise<{ bytes: Buffer; cut: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  let cut = false
  for await (const chunk of unpacked(response) as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > bytes_max) {
      cut = true
      break
    }
  }
  response.destroy()
  return { bytes: Buffer.concat(chunks).subarray(0, bytes_max), cut }
}

function unpacked(response: IncomingMessage): Readable {
  const unpack = {
    gzip: createGunzip,
    'x-gzip': createGunzip,
    deflate: createInflate,
    br: createBrotliDecompress,
  }
  const encoding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity' || encoding === '') return response
  if (!Object.hasOwn(unpack, encoding))
    throw new Refusal(`The answer is packed as ${encoding}, which is not known here.`)
  const stream = unpack[encoding as keyof typeof unpack]()
  response.once('error', (error) => stream.destroy(error))
  return response.pipe(stream)
}
