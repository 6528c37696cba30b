import { afterEach, describe, expect, test, vi } from 'vitest'
import { benchmarks } from '../src/bench.ts'
import { torture } from '../src/torture.ts'

async function said(program: (args: string[]) => Promise<number>, args: string[]) {
  const out = vi.spyOn(console, 'log').mockReturnValue()
  const err = vi.spyOn(console, 'error').mockReturnValue()
  const code = await program(args)
  return { code, out: out.mock.calls.flat().join('\n'), err: err.mock.calls.flat().join('\n') }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe.each([
  ['torture', torture, 'usage: npm run torture'],
  ['bench', benchmarks, 'usage: npm run bench'],
] as const)('%s', (_name, program, usage) => {
  test('--help tells what there is, and nothing runs', async () => {
    expect(await said(program, ['--help'])).toEqual({ code: 0, out: expect.stringContaining(usage), err: '' })
  })

  test('a flag or name that is not there ends with words and 2', async () => {
    for (const args of [['--nonsense'], ['handof'], ['--json=yes']]) {
      const { code, out, err } = await said(program, args)
      expect([code, out]).toEqual([2, ''])
      expect(err).toContain(usage)
      expect(err).not.toMatch(/^\s+at /m)
      vi.restoreAllMocks()
    }
  })
})

test.each([
  [['handoff', '--every', '0'], '--every takes whole numbers from 1 on, not "0".'],
  [['handoff', '--at', '3,x'], '--at takes whole numbers from 1 on, not "x".'],
  [['handoff', '--how', 'kil'], 'There is no --how "kil". There are: kill, write, move.'],
  [['pool', '--sessions', ''], '--sessions takes whole numbers from 1 on, not "".'],
  [['pool', '--capacity'], "Option '--capacity <value>' argument missing."],
  [['pool', 'handoff'], 'One at a time, please.'],
  [[], 'Which torture? There are: handoff, pool.'],
])('torture %j is refused before anything runs', async (args, words) => {
  const { code, err } = await said(torture, args)
  expect(code).toBe(2)
  expect(err.split('\n')[0]).toBe(words)
})
