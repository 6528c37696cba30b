/**
 * Raw DEFLATE (RFC 1951), at once and with a preset dictionary: what browsers bring along (pack.ts) does neither, and the libraries
 * that do would take twice the room in what a phone loads first. Written after the RFC, for short bodies; it is slow on long ones.
 */

/** Symbols of a code in the order of their codes, and how many have each length (§3.2.2). */
interface Code {
  counts: Uint16Array
  symbols: number[]
}

const LENGTH_BITS_MAX = 15
const END = 256
/** Order in which the lengths of the code of lengths are given (§3.2.7). */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
/** Bases of lengths from symbol 257 on and of distances, and how many further bits each has (§3.2.5). */
const [LENGTHS, LENGTH_EXTRA] = bases(3, 4, 28)
const [DISTANCES, DISTANCE_EXTRA] = bases(1, 2, 30)
LENGTHS.push(258)
LENGTH_EXTRA.push(0)

/** `a` symbols without further bits, then `a / 2` … with one, two, three. */
function bases(first: number, group: number, count: number): [bases: number[], extra: number[]] {
  const values: number[] = []
  const extra: number[] = []
  for (let i = 0, base = first; i < count; i++) {
    const bits = Math.max(0, Math.floor(i / group) - 1)
    values.push(base)
    extra.push(bits)
    base += 1 << bits
  }
  return [values, extra]
}

function codeOf(lengths: ArrayLike<number>): Code {
  const counts = new Uint16Array(LENGTH_BITS_MAX + 1)
  const symbols: number[] = []
  for (let length = 1; length <= LENGTH_BITS_MAX; length++) {
    for (let symbol = 0; symbol < lengths.length; symbol++) {
      if (lengths[symbol] !== length) continue
      counts[length] = (counts[length] ?? 0) + 1
      symbols.push(symbol)
    }
  }
  return { counts, symbols }
}

const FIXED = codeOf(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)))
const FIXED_DISTANCES = codeOf(new Uint8Array(30).fill(5))

/** Throws RangeError when the bytes are damaged, or hold more than `bytes_max`. */
export function inflateRaw(bytes: Uint8Array, dictionary: Uint8Array, bytes_max = 16 << 20): Uint8Array {
  let out = new Uint8Array(dictionary.length + 4 * bytes.length + 64)
  out.set(dictionary)
  let end = dictionary.length
  let at = 0
  let held = 0
  let count = 0

  function bits(wanted: number): number {
    while (count < wanted) {
      const byte = bytes[at++]
      if (byte === undefined) throw new RangeError('the data ends too early')
      held |= byte << count
      count += 8
    }
    const value = held & ((1 << wanted) - 1)
    held >>>= wanted
    count -= wanted
    return value
  }

  function symbolOf({ counts, symbols }: Code): number {
    let code = 0
    let first = 0
    let index = 0
    for (let length = 1; length <= LENGTH_BITS_MAX; length++) {
      code |= bits(1)
      const of = counts[length] ?? 0
      if (code - of < first) return symbols[index + code - first] ?? END
      index += of
      first = (first + of) << 1
      code <<= 1
    }
    throw new RangeError('no such code')
  }

  function room(more: number): void {
    if (end + more <= out.length) return
    if (end + more - dictionary.length > bytes_max) throw new RangeError('too much data')
    const larger = new Uint8Array(2 * (end + more))
    larger.set(out)
    out = larger
  }

  function stored(): void {
    held = count = 0
    const length = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)
    const inverse = (bytes[at + 2] ?? 0) | ((bytes[at + 3] ?? 0) << 8)
    at += 4
    if (length !== (~inverse & 0xffff) || at + length > bytes.length) throw new RangeError('no stored block')
    room(length)
    out.set(bytes.subarray(at, at + length), end)
    at += length
    end += length
  }

  function codes(): [literals: Code, distances: Code] {
    const literals = bits(5) + 257
    const all = literals + bits(5) + 1
    const lengths = new Uint8Array(19)
    for (let i = 0, given = bits(4) + 4; i < given; i++) lengths[ORDER[i] ?? 0] = bits(3)
    const code = codeOf(lengths)
    const found: number[] = []
    while (found.length < all) {
      const symbol = symbolOf(code)
      if (symbol < 16) found.push(symbol)
      else {
        const length = symbol === 16 ? found.at(-1) : 0
        if (length === undefined) throw new RangeError('nothing to repeat')
        const times = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7)
        for (let i = 0; i < times; i++) found.push(length)
      }
    }
    return [codeOf(found.slice(0, literals)), codeOf(found.slice(literals))]
  }

  function packed(literals: Code, distances: Code): void {
    for (let symbol = symbolOf(literals); symbol !== END; symbol = symbolOf(literals)) {
      if (symbol < END) {
        room(1)
        out[end++] = symbol
        continue
      }
      const length = (LENGTHS[symbol - 257] ?? NaN) + bits(LENGTH_EXTRA[symbol - 257] ?? 0)
      const far = symbolOf(distances)
      const from = end - (DISTANCES[far] ?? NaN) - bits(DISTANCE_EXTRA[far] ?? 0)
      if (!(length > 0 && from >= 0)) throw new RangeError('it refers to nothing')
      room(length)
      for (let i = 0; i < length; i++) out[end++] = out[from + i] as number
    }
  }

  for (let isLast = 0; isLast === 0;) {
    isLast = bits(1)
    const type = bits(2)
    if (type === 0) stored()
    else if (type === 1) packed(FIXED, FIXED_DISTANCES)
    else if (type === 2) packed(...codes())
    else throw new RangeError('no such block')
  }
  return out.subarray(dictionary.length, end)
}
