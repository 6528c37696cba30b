/**
 * Differences between two memories in pages of 4 KiB. A changed page is kept as its exclusive-or with the old one: mostly
 * zeros, which compress to nothing.
 */
export const pageBytes = 4096

export interface PageDiff {
  /** Size of the new memory. */
  bytes: number
  /** Numbers of the changed pages, ascending. */
  pages: number[]
  /** Their contents, xor the old ones, in the same order. */
  data: Uint8Array
}

/** Pages of `now` that differ from `base`; what lies beyond the end of `base` counts as zeros there. */
export function diffPages(now: Uint8Array, base: Uint8Array): PageDiff {
  const pages: number[] = []
  const a = Buffer.from(now.buffer, now.byteOffset, now.byteLength)
  const b = Buffer.from(base.buffer, base.byteOffset, base.byteLength)
  for (let at = 0; at < a.length; at += pageBytes) {
    const end = at + pageBytes
    const differs = at < b.length ? a.compare(b, at, end, at, end) !== 0 : !zeros.equals(a.subarray(at, end))
    if (differs) pages.push(at / pageBytes)
  }
  const data = new Uint8Array(pages.length * pageBytes)
  for (const [i, page] of pages.entries()) {
    xorPage(data, i * pageBytes, now, page * pageBytes)
    if (page * pageBytes < base.length) xorPage(data, i * pageBytes, base, page * pageBytes)
  }
  return { bytes: now.length, pages, data }
}

/** Turns the memory that a diff was made against into the one that it was made of. Throws a RangeError when it does not fit. */
export function applyPages(memory: Uint8Array, diff: PageDiff): void {
  if (diff.bytes > memory.length || diff.data.length !== diff.pages.length * pageBytes)
    throw new RangeError('the pages do not fit the memory')
  for (const [i, page] of diff.pages.entries()) {
    if ((page + 1) * pageBytes > memory.length)
      throw new RangeError(`page ${page} lies outside of the memory`)
    xorPage(memory, page * pageBytes, diff.data, i * pageBytes)
  }
}

const zeros = Buffer.alloc(pageBytes)

function xorPage(into: Uint8Array, at: number, from: Uint8Array, fromAt: number): void {
  const a = new Uint32Array(into.buffer, into.byteOffset + at, pageBytes / 4)
  const b = new Uint32Array(from.buffer, from.byteOffset + fromAt, pageBytes / 4)
  for (let i = 0; i < a.length; i++) a[i]! ^= b[i]!
}
