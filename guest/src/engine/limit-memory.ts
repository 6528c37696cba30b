/**
 * Gives the first memory of a module a maximum, so that a guest can't grow without bounds. Binaryen's JavaScript API
 * can't set the maximum of an existing memory, so the memory section is rewritten:
 *
 *     05 size count  flags min [max]  flags min [max]  …        flags bit 0: a maximum follows
 */

/** Returns the module with `pagesMax` (64 KiB each) as the maximum of memory 0. Throws when it has no memory section. */
export function limitMemory(module: Uint8Array, pagesMax: number): Uint8Array<ArrayBuffer> {
  let at = 8
  while (at < module.length) {
    const id = module[at]!
    const [size, body] = readVarint(module, at + 1)
    if (id === 5) {
      const section = limitFirst(module.subarray(body, body + size), pagesMax)
      return concat([
        module.subarray(0, at),
        [5],
        varint(section.length),
        section,
        module.subarray(body + size),
      ])
    }
    at = body + size
  }
  throw new Error('the module has no memory of its own')
}

function limitFirst(section: Uint8Array, pagesMax: number): Uint8Array {
  const [count, flagsAt] = readVarint(section, 0)
  const flags = section[flagsAt]!
  const [min, afterMin] = readVarint(section, flagsAt + 1)
  const rest = flags & 1 ? readVarint(section, afterMin)[1] : afterMin
  return concat([varint(count), [flags | 1], varint(min), varint(pagesMax), section.subarray(rest)])
}

function readVarint(bytes: Uint8Array, at: number): [value: number, next: number] {
  let value = 0
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++]
    if (byte === undefined) throw new Error('the module ends in the middle of a number')
    value += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) return [value, at]
  }
}

function varint(value: number): number[] {
  const bytes: number[] = []
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80)
  return [...bytes, value]
}

function concat(parts: ArrayLike<number>[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
