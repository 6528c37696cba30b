import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Json, Mode } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { objectionToWay } from '../src/session/permissions.ts'
import { isAllowed, isPublic } from '../src/tools/addresses.ts'
import { fetch } from '../src/tools/fetch.ts'
import type { ToolContext } from '../src/tools/tool.ts'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
let server: Server
let other: Server
let base: string
const asked: IncomingMessage[] = []

const pages: Record<string, (response: ServerResponse) => void> = {
  '/page': (response) =>
    response
      .setHeader('content-type', 'text/html; charset=utf-8')
      .end(
        '<title>Ti&amp;tle</title><script>evil()</script><h1>Head 😀</h1><p>One <b>two</b> <a href="/x">link</a></p>',
      ),
  '/latin': (response) =>
    response
      .setHeader('content-type', 'text/plain; charset=iso-8859-1')
      .end(Buffer.from('caf\xe9', 'latin1')),
  '/gzip': (response) => response.setHeader('content-encoding', 'gzip').end(gzipSync('packed')),
  '/bomb': (response) =>
    response.setHeader('content-encoding', 'br').end(brotliCompressSync(Buffer.alloc(50 << 20, 'x'))),
  '/endless': (response) => {
    const more = (): void => void (response.destroyed || response.write('y'.repeat(65_536), more))
    more()
  },
  '/once': (response) => response.writeHead(302, { location: '/latin' }).end(),
  '/loop': (response) => response.writeHead(302, { location: '/loop' }).end(),
  '/away': (response) => response.writeHead(302, { location: `http://127.0.0.1:${port(other)}/latin` }).end(),
  '/file': (response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  '/login': (response) =>
    response.writeHead(302, { location: `${base.replace('//', '//a:b@')}/latin` }).end(),
  '/binary': (response) => response.setHeader('content-type', 'application/pdf').end('%PDF\0'),
  '/picture': (response) => response.setHeader('content-type', 'application/octet-stream').end(PNG),
  '/hang': () => undefined,
}

function port(of: Server): number {
  return (of.address() as AddressInfo).port
}

beforeAll(async () => {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request)
    const page = pages[request.url ?? '']
    if (page) page(response)
    else response.writeHead(404).end('nothing here')
  }
  server = createServer(answer)
  other = createServer(answer)
  for (const one of [server, other]) await new Promise<void>((done) => one.listen(0, '127.0.0.1', done))
  base = `http://127.0.0.1:${port(server)}`
})
afterAll(() => {
  for (const one of [server, other]) {
    one.closeAllConnections()
    one.close()
  }
})

function contextOf(allowed: string[], signal = new AbortController().signal): ToolContext {
  const stay = { fetchAllowed: allowed, end: async () => undefined }
  return { root: '/', readFiles: new Map(), signal, stay }
}

/** The first server may be reached, the other not. */
const use = (path: string, more: { [key: string]: Json } = {}) =>
  fetch.execute({ url: base + path, ...more }, contextOf([`127.0.0.1:${port(server)}`]))

test('a page comes as Markdown without its scripts, or raw', async () => {
  const page = await use('/page')
  expect(page.text).toBe(`[${base}/page: 200 text/html]\nTi&tle\n\n# Head 😀\n\nOne **two** [link](/x)`)
  expect(page).toMatchObject({ is_error: false, detail: { status: 200, type: 'text/html', cut: false } })
  expect((await use('/page', { raw: true })).text).toContain('<script>evil()')
})

test('text comes in its character set and unpacked; errors of the server are told', async () => {
  expect((await use('/latin')).text).toContain('\ncafé')
  expect((await use('/gzip')).text).toContain('\npacked')
  expect(await use('/missing')).toMatchObject({
    is_error: true,
    text: `[${base}/missing: 404 of no type]\nnothing here`,
  })
})

test('pictures are shown, other files refused in words', async () => {
  expect(await use('/picture')).toMatchObject({ images: [{ media_type: 'image/png', bytes: PNG }] })
  const pdf = await use('/binary')
  expect(pdf).toMatchObject({ is_error: true, detail: { code: 'not-text' } })
  expect(pdf.text).toContain('application/pdf of 5 bytes')
})

test.each(['/endless', '/bomb'])('T4: %s is cut at its limit', async (path) => {
  const result = await use(path)
  expect(result).toMatchObject({ is_error: false, detail: { bytes: 4 << 20, cut: true } })
  expect(result.text.length).toBeLessThan(31_000)
})

test('T4: redirects are followed a few times, each checked anew', async () => {
  expect((await use('/once')).text).toBe(`[${base}/latin: 200 text/plain]\ncafé`)
  expect((await use('/loop')).text).toContain('redirects more than 5 times')
  const before = asked.length
  expect(await use('/away')).toMatchObject({ is_error: true, detail: { code: 'not-public' } })
  expect(asked.length).toBe(before + 1)
  expect((await use('/file')).text).toContain('Only http and https')
  expect((await use('/login')).text).toContain('user name or password')
})

test('B4: a redirect leads nowhere where a rule forbids or asks, nor out of what was allowed', async () => {
  const to = async (mode: Mode, rules: Rule[], path = '/away') => {
    const context = contextOf([`127.0.0.1:${port(server)}`, `127.0.0.1:${port(other)}`])
    const policy = { mode, rules, tools: new Map([['fetch', fetch]]) }
    const input = { url: base + path }
    const objectionTo = (way: { [key: string]: Json }): string | undefined =>
      objectionToWay(policy, { name: 'fetch', input }, way)
    const before = asked.length
    const { text, is_error } = await fetch.execute(input, { ...context, objectionTo })
    return { text, is_error, asked: asked.length - before }
  }
  const rule = (action: Rule['action'], prefix: string): Rule => ({ tool: 'fetch', prefix, action })
  const there = `http://127.0.0.1:${port(other)}/latin`
  for (const mode of ['ask', 'full'] as const) {
    expect(await to(mode, [])).toMatchObject({ is_error: false, asked: 2 })
    const denied = await to(mode, [rule('deny', there)], '/away')
    expect(denied).toMatchObject({ is_error: true, asked: 1 })
    expect(denied.text).toBe(
      `${base}/away redirects to ${there}. That is forbidden for fetch: the rule "deny fetch: ${there}".`,
    )
    expect(await to(mode, [rule('ask', there)])).toMatchObject({ is_error: true, asked: 1 })
  }
  // Nobody was asked for the first, and for the second somebody would be.
  const own = rule('allow', base)
  expect(await to('ask', [own])).toMatchObject({ is_error: true, asked: 1 })
  expect(await to('ask', [own], '/once')).toMatchObject({ is_error: false, asked: 2 })
  expect(await to('full', [own])).toMatchObject({ is_error: false, asked: 2 })
})

test('T4: nothing of the person goes along', async () => {
  await use('/latin')
  expect(Object.keys(asked.at(-1)?.headers ?? {}).toSorted()).toEqual([
    'accept',
    'accept-encoding',
    'accept-language',
    'connection',
    'host',
    'user-agent',
  ])
})

describe('T4: what is not public is refused before anything is sent', () => {
  test.each([
    'http://127.0.0.1:PORT/latin',
    'http://localhost:PORT/latin',
    'http://2130706433:PORT/latin',
    'http://0x7f.1:PORT/latin',
    'http://[::1]:PORT/latin',
    'http://[::ffff:127.0.0.1]:PORT/latin',
    'http://0.0.0.0:PORT/latin',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://[64:ff9b::a00:1]/',
  ])('%s', async (url) => {
    const before = asked.length
    const result = await fetch.execute({ url: url.replace('PORT', String(port(server))) }, contextOf([]))
    expect(result).toMatchObject({ is_error: true, detail: { code: 'not-public' } })
    expect(asked.length).toBe(before)
  })

  test('a name that leads to this machine is checked by its address', async () => {
    const url = `http://localhost:${port(server)}/latin`
    expect(await fetch.execute({ url }, contextOf([]))).toMatchObject({ detail: { code: 'not-public' } })
    expect((await fetch.execute({ url }, contextOf(['localhost']))).text).toContain('café')
  })
})

test('public addresses are told from others', () => {
  for (const address of ['1.1.1.1', '172.32.0.1', '2606:4700::1111', '::ffff:1.1.1.1', '64:ff9b::101:101'])
    expect(isPublic(address), address).toBe(true)
  for (const address of [
    '172.16.0.1',
    '100.64.0.1',
    '224.0.0.1',
    '2002::1',
    '2001:db8::1',
    '::',
    'ff02::1',
    'x',
  ])
    expect(isPublic(address), address).toBe(false)
  expect(isAllowed(new URL('https://a.example/'), ['a.example:443'])).toBe(true)
  expect(isAllowed(new URL('https://a.example/'), ['a.example:80', 'example'])).toBe(false)
  expect(isAllowed(new URL('http://[::1]:5/'), ['[::1]:5'])).toBe(true)
})

test.each([
  ['ftp://example.com/', 'Only http and https'],
  ['example.com', 'not an address'],
  ['https://u:p@example.com/', 'user name or password'],
  ['http://127.0.0.1:1/', 'could not be fetched'],
])('%s is refused in words', async (url, words) => {
  const result = await fetch.execute({ url }, contextOf(['127.0.0.1:1']))
  expect(result.is_error).toBe(true)
  expect(result.text).toContain(words)
})

test('Stop ends it', async () => {
  const stop = new AbortController()
  const call = fetch.execute({ url: `${base}/hang` }, contextOf(['127.0.0.1'], stop.signal))
  stop.abort()
  await expect(call).rejects.toMatchObject({ code: 'stopped' })
})
