import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import { defineTool, Refusal } from './define.ts'
import { markdownOf } from './html.ts'
import { get, reachable, type Got } from './http.ts'
import { pictureOf, pictureType } from './pictures.ts'
import { bounded, RESULT_CHARS } from './text.ts'
import type { ToolAnswer } from './tool.ts'

const BYTES = 4 << 20
const TIMEOUT_MS = 30_000
const MARKDOWN_MS = 10_000
const ACCEPT =
  'text/markdown, text/html;q=0.9, text/*;q=0.8, application/json;q=0.8, image/*;q=0.5, */*;q=0.1'

export const fetch = defineTool({
  name: 'fetch',
  description: `Gets a public web address (http or https, GET) and returns its text; pages come as Markdown, pictures as pictures. At most ${BYTES >> 20} MB and ${TIMEOUT_MS / 1000} seconds; long text is cut in the middle.
Nothing of the person goes along: no cookies, no passwords. Addresses of this machine and its networks are refused; for those use bash.`,
  replay: 'safe',
  access: 'run',
  input: v.strictObject({
    url: v.pipe(
      v.string(),
      v.minLength(1),
      v.description('The whole address, e.g. https://example.com/page.'),
    ),
    raw: v.optional(
      v.pipe(v.boolean(), v.description('Return a page as the HTML that it is. Default false.')),
    ),
  }),
  check({ url }, place) {
    reachable(url, place && (place.stay?.fetchAllowed ?? []))
  },
  async run({ url, raw = false }, context) {
    const limit = AbortSignal.timeout(TIMEOUT_MS)
    const signal = AbortSignal.any([context.signal, limit])
    let got: Got
    try {
      got = await get(url, {
        allowed: context.stay?.fetchAllowed ?? [],
        bytes_max: BYTES,
        accept: ACCEPT,
        signal,
        objectionTo: (to) => context.objectionTo?.({ ...(raw ? { raw } : {}), url: to }),
      })
    } catch (error) {
      if (context.signal.aborted) throw new BatonError('stopped')
      if (error instanceof Refusal) throw error
      if (limit.aborted)
        throw new Refusal(`${url} did not answer within ${TIMEOUT_MS / 1000} seconds.`, 'timeout')
      throw new Refusal(`${url} could not be fetched: ${reasonOf(error)}`, 'failed')
    }
    const picture = pictureType(got.bytes)
    if (picture && got.status < 400 && !got.cut) {
      const { width, height } = pictureOf(got.bytes, picture, got.url.href)
      return {
        ...answer(got, `${picture}, ${width} × ${height} pixels`),
        images: [{ media_type: picture, bytes: got.bytes }],
      }
    }
    return answer(got, await textOf(got, raw, context.signal))
  },
})

function answer({ url, status, type, bytes, cut }: Got, text: string): ToolAnswer {
  const more = cut ? `, cut after ${bytes.length} bytes` : ''
  const head = `[${url.href}: ${status} ${type || 'of no type'}${more}]`
  return {
    text: `${head}\n${bounded(text, RESULT_CHARS)}`,
    is_error: status >= 400,
    detail: { url: url.href, status, type, bytes: bytes.length, cut },
  }
}

async function textOf(
  { url, type, charset, bytes }: Got,
  raw: boolean,
  signal: AbortSignal,
): Promise<string> {
  if (bytes.length === 0) return '(empty)'
  if (bytes.subarray(0, 8192).includes(0) && !/^utf-?16/i.test(charset ?? '')) {
    const todo = 'It is not text. Download it with bash, say curl, into a file.'
    throw new Refusal(`${url.href} is ${type || 'a file'} of ${bytes.length} bytes. ${todo}`, 'not-text')
  }
  const isPage = type === 'text/html' || type === 'application/xhtml+xml'
  const text = decoded(bytes, charset ?? (isPage ? metaCharset(bytes) : undefined))
  if (!isPage || raw) return text
  const markdown = await markdownOf(text, MARKDOWN_MS, signal)
  if (signal.aborted) throw new BatonError('stopped')
  return markdown ?? `(This page is too intricate to be made into Markdown; here is its HTML.)\n${text}`
}

function decoded(bytes: Buffer, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

function metaCharset(bytes: Buffer): string | undefined {
  const [, charset] = /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(bytes.toString('latin1', 0, 2048)) ?? []
  return charset
}

/** Node's own words, of the first of several tries. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}
