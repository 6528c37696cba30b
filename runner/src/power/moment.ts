/** Moments on both clocks: the monotonic one stands still while a laptop sleeps, the wall clock may be set. */
export interface Moment {
  mono: number
  wall: number
}

export function moment(): Moment {
  return { mono: performance.now(), wall: Date.now() }
}

/** Milliseconds since then, on the clock that says more: a lease is rather given up too early than kept too long. */
export function since(then: Moment): number {
  const now = moment()
  return Math.max(now.mono - then.mono, now.wall - then.wall)
}
