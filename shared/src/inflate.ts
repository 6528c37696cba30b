/**
 * Raw DEFLATE (RFC 1951), at once and with a preset dictionary: what browsers bring along (pack.ts) does neither, and a phone has to
 * load this before it can show anything. So it knows the fixed codes and stored blocks only, which is what runners write
 * (runner/src/session/compact.ts): short bodies gain nothing from codes of their own.
 */

const END = 256
/** Bases of lengths from symbol 257 on and of distances, and how many further bits each has (§3.2.5). */
const [LENGTHS, LENGTH_EXTRA] = bases(3, 4, 28)
const [DISTANCES, DISTANCE_EXTRA] = bases(1, 2, 30)
LENGTHS.push(258)
LENGTH_EXTRA.push(0)

/** `group` symbols without further bits, another one, then one for each number of bits. */
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

/** Throws RangeError when the bytes are damaged, have codes of their own, or hold more than `bytes_max`. */
export function inflateRaw(bytes: Uint8Array, dictionary: Uint8Array, bytes_max = 16 << 20): Uint8Array {
  let out = new Uint8Array(dictionary.length + 4 * bytes.length + 64)
  out.set(dictionary)
  let end = dictionary.length
  /** In bits. */
  let at = 0

  /** Numbers stand in the stream from their lowest bit on. */
  function bits(count: number): number {
    let value = 0
    for (let i = 0; i < count; i++, at++) value |= (((bytes[at >> 3] ?? 0) >> (at & 7)) & 1) << i
    if (at > 8 * bytes.length) throw new RangeError('the data ends too early')
    return value
  }

  /** Codes from their highest one on. */
  function code(count: number, first = 0): number {
    let value = first
    for (let i = 0; i < count; i++) value = 2 * value + bits(1)
    return value
  }

  /** §3.2.6 */
  function symbol(): number {
    const seven = code(7)
    if (seven < 24) return END + seven
    const eight = code(1, seven)
    if (eight < 192) return eight - 48
    return eight < 200 ? eight + 88 : code(1, eight) - 256
  }

  function room(more: number): void {
    if (end + more <= out.length) return
    if (end + more - dictionary.length > bytes_max) throw new RangeError('too much data')
    const larger = new Uint8Array(2 * (end + more))
    larger.set(out)
    out = larger
  }

  function stored(): void {
    at = (at + 7) & ~7
    const length = bits(16)
    if ((length ^ bits(16)) !== 0xffff) throw new RangeError('no stored block')
    room(length)
    for (let i = 0; i < length; i++) out[end++] = bits(8)
  }

  function packed(): void {
    for (let next = symbol(); next !== END; next = symbol()) {
      if (next < END) {
        room(1)
        out[end++] = next
        continue
      }
      const length = (LENGTHS[next - 257] ?? NaN) + bits(LENGTH_EXTRA[next - 257] ?? 0)
      const far = code(5)
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
    else if (type === 1) packed()
    else throw new RangeError('no such block')
  }
  return out.subarray(dictionary.length, end)
}
