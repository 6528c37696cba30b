/**
 * The guest's random numbers: xoshiro128** with its state in guest memory, seeded by the session. So a run can be repeated, and a
 * fork, which is seeded anew, draws other numbers.
 */
const state = new Uint32Array([1, 2, 3, 4])

/** Seeds the generator with 64 hex digits. */
export function seedRandom(seed: string): void {
  const word = (i: number): number => Number.parseInt(seed.slice(8 * i, 8 * i + 8), 16) >>> 0
  for (let i = 0; i < 4; i++) state[i] = (word(i) ^ word(i + 4)) >>> 0
  if (state.every((part) => part === 0)) state[0] = 1
}

const rotate = (x: number, by: number): number => ((x << by) | (x >>> (32 - by))) >>> 0

function next32(): number {
  const [a, b, c, d] = state as unknown as [number, number, number, number]
  const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0
  const e = d ^ b
  const f = c ^ a
  state[0] = a ^ e
  state[1] = b ^ f
  state[2] = f ^ (b << 9)
  state[3] = rotate(e >>> 0, 11)
  return result
}

/** A number in [0, 1) with 53 random bits. */
export function random(): number {
  return ((next32() >>> 5) * 2 ** 26 + (next32() >>> 6)) / 2 ** 53
}
