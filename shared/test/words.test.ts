/** Words that are the same wherever a session or a runner is shown. */
import { expect, test } from 'vitest'
import { isLeaving, isTaking, presenceWords, roomWords } from '../src/view/runners.ts'
import { titleOf } from '../src/view/sessions.ts'
import { agoWords } from '../src/view/units.ts'

test('a time in a line reads as one', () => {
  expect([agoWords(0, 59_000), agoWords(0, 60_000), agoWords(0, 3 * 86_400_000)]).toEqual([
    'just now',
    '1 min ago',
    '3 d ago',
  ])
})

test('a title is the first line of the prompt, cut at a word', () => {
  expect(titleOf('  Fix the build\nand more')).toBe('Fix the build')
  const long = titleOf('word '.repeat(40))
  expect(long.length).toBeLessThanOrEqual(81)
  expect(long).toMatch(/word…$/)
})

test('a runner that gives its sessions back is leaving: it is not said to be full, and takes none', () => {
  const runner = (online: boolean, held: number, capacity: number) => ({ online, held, capacity })
  const words = (of: ReturnType<typeof runner>) => [presenceWords(of), roomWords(of), isTaking(of)]
  expect(words(runner(true, 1, 4))).toEqual(['online', '1 of 4', true])
  expect(words(runner(true, 3, 0))).toEqual(['leaving', '3', false])
  expect(words(runner(false, 0, 4))).toEqual(['away', '0 of 4', false])
  expect(words(runner(false, 0, 0))[0]).toBe('away')
  expect(isLeaving(runner(true, 0, 0))).toBe(true)
})
