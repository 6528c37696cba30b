/** The repository that the screenshots are taken with. */
export const SHOWCASE: Record<string, string> = {
  'src/lap.mjs': `/** Counts laps, across restarts. */
export class LapCounter {
  laps = 0

  finish() {
    this.laps++
  }

  restore(saved) {
    this.laps = saved.laps + 1
  }
}
`,
  'test/lap.test.mjs': `import assert from 'node:assert'
import { test } from 'node:test'
import { LapCounter } from '../src/lap.mjs'

test('a restored counter goes on where it was', () => {
  const counter = new LapCounter()
  counter.restore({ laps: 3 })
  assert.equal(counter.laps, 3)
})
`,
}
