/**
 * The guest's random numbers: xoshiro128** with its state in guest memory. The host finds the state (runtime.ts tells it where) and
 * seeds it when the session starts and again when it is forked, at whatever place the guest rests, so that forks draw other
 * numbers (F58).
 */
export const randomState = new Uint32Array([1, 2, 3, 4])

const rotate = (x: number, by: number): number => ((x << by) | (x >>> (32 - by))) >>> 0

function next32(): number {
  const [a, b, c, d] = randomState as unknown as [number, number, number, number]
  const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
  const e = d ^ b
  const f = c ^ a
  randomState[0] = a ^ e
  randomState[1] = b ^ f
  randomState[2] = f ^ (b << 9)
  randomState[3] = rotate(e >>> 0, 11)
  return result
}

/** A number in [0, 1) with 53 random bits. */
export function random(): number {
  return ((next32() >>> 5) * 2 ** 26 + (next32() >>> 6)) / 2 ** 53
}
