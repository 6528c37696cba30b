/** What the screenshots show: a bug is found, mended and tested, and a person steers meanwhile. */
import { call, hold, say, think, type Turn } from './model-turns.ts'

/** The repository that they are taken with. */
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
  'package.json': `{ "scripts": { "test": "node --test" } }
`,
  'CHANGELOG.md': `# Changes

## Next

- Laps can be named.
`,
}

const todos = (...states: ('open' | 'doing' | 'done')[]) => ({
  items: ['Find where a lap is counted twice', 'Mend it', 'Run all tests'].map((text, i) => ({
    text,
    state: states[i] ?? 'open',
  })),
})

/** The gate `steer` holds the fourth answer. */
export const SHOWCASE_TURNS: Turn[] = [
  [
    think(
      'The counter is off by one only after a restart, so it is either what is stored or how it is read back. ' +
        'I look at both before I change anything.',
    ),
    call('todo', todos('doing')),
    call('grep', { pattern: 'laps' }),
    call('read', { path: 'src/lap.mjs' }),
  ],
  [
    say(
      'Found it. `restore()` counts the stored laps **and** the one that was running when the timer stopped:\n\n',
      '```ts\nthis.laps = saved.laps + 1\n```\n\nThe running lap is stored as well, so it must not be ',
      'added again. I mend that and run the tests.',
    ),
    call('edit', {
      path: 'src/lap.mjs',
      old_string: '    this.laps = saved.laps + 1',
      new_string: '    // The running lap is among the saved ones.\n    this.laps = saved.laps',
    }),
  ],
  [
    think('The edit is in. Now the tests.'),
    call('todo', todos('done', 'done', 'doing')),
    call('bash', { command: 'npm test' }),
  ],
  [
    hold('steer'),
    say('All tests pass. I check what else reads the stored laps.'),
    call('grep', { pattern: 'restore' }),
  ],
  [
    call('edit', {
      path: 'CHANGELOG.md',
      old_string: '- Laps can be named.\n',
      new_string: '- Laps can be named.\n- After a restart no lap is counted twice.\n',
    }),
    call('todo', todos('done', 'done', 'done')),
  ],
  [
    say(
      'The counter is right after a restart now, and all tests pass.\n\n',
      '- `src/lap.mjs`: the running lap is no longer counted twice\n',
      '- `test/lap.test.mjs` already covered it and was red before\n',
      '- `CHANGELOG.md` says so',
    ),
  ],
]
