/** One runner, many sessions, real processes. The whole form, with fifty, is `npm run torture -- pool`. */
import { expect, it } from 'vitest'
import { pool, poolLine } from '../src/torture/pool.ts'

it('S7, S8: more sessions than one runner has room for all finish, in their order, and none starves', async () => {
  const verdict = await pool({ sessions: 9, capacity: 3 })
  console.log(poolLine(verdict))
  expect(verdict.violations).toEqual([])
  // It was full, or nothing was shown.
  expect(verdict.held).toBe(3)
  expect(verdict.longest_wait_ms).toBeGreaterThan(0)
})
