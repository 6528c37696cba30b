/** Searches files of a session, in a thread of its own: a pattern may take for ever. */
import { parentPort, workerData } from 'node:worker_threads'
import picomatch from 'picomatch'
import type { Found, Search } from '../tools/git-search.ts'

export interface SearchTask {
  search: Search
  /** Path and bytes, in the order of the answer. `shown`: as the model knows it; `path`: what `glob` counts from. */
  files: { shown: string; path: string; bytes: Uint8Array }[]
  lines_max: number
}

const { search, files, lines_max } = workerData as SearchTask
const source = search.literal
  ? search.pattern.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)
  : search.pattern
const pattern = new RegExp(source, search.ignore_case ? 'i' : '')
const glob = search.glob?.replace(/^(\.?\/)+/, '')
const matches =
  glob === undefined ? () => true : picomatch(glob, { dot: true, basename: !glob.includes('/') })

function found(): Found {
  const lines: string[] = []
  for (const { shown, path, bytes } of files) {
    if (!matches(path) || bytes.subarray(0, 8192).includes(0)) continue
    const text = new TextDecoder().decode(bytes).split('\n')
    if (text.at(-1) === '') text.pop()
    const hits = text.flatMap((line, at) => (pattern.test(line.replace(/\r$/, '')) ? [at] : []))
    if (hits.length === 0) continue
    if (search.files_only) lines.push(shown)
    else lines.push(...excerpts(shown, text, new Set(hits), search.context ?? 0))
    if (lines.length > lines_max) return { lines: lines.slice(0, lines_max), cut: true }
  }
  return { lines, cut: false }
}

/** Groups of lines around the hits, `--` between them, as grep prints them. */
function excerpts(shown: string, text: string[], hits: Set<number>, around: number): string[] {
  const lines: string[] = []
  let last = -1
  for (let at = 0; at < text.length; at++) {
    const isNear = [...Array(2 * around + 1).keys()].some((step) => hits.has(at - around + step))
    if (!isNear) continue
    if (around > 0 && lines.length > 0 && at > last + 1) lines.push('--')
    last = at
    const mark = hits.has(at) ? ':' : '-'
    lines.push(`${shown}${mark}${at + 1}${mark}${text[at] ?? ''}`)
  }
  return lines
}

parentPort?.postMessage(found())
