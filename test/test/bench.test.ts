import { afterEach, describe, expect, test, vi } from 'vitest'
import { groupNames, loadGroup, runGroups, table } from '../src/bench.ts'
import type { Group } from '../src/bench.ts'
import { quantile, result } from '../src/bench/result.ts'

const about = { measures: 'nothing.', leavesOut: 'everything.' }

function group(...results: ReturnType<typeof result>[]): () => Promise<Group> {
  return () =>
    Promise.resolve({
      about,
      bench: async function* () {
        yield* results
      },
    })
}

const kept = result('stop p99', 1.234, { unit: 'ms', samples: 200, budget: 5 })
const missed = result('throughput', 40, {
  unit: '%',
  samples: 3,
  budget: 50,
  better: 'higher',
  versus: 'bare XADD',
})
const free = result('size', 1234.5, { unit: 'KB', samples: 1 })

async function run(groups: Record<string, () => Promise<Group>>, json: boolean) {
  let printed = ''
  const code = await runGroups(groups, { json, print: (text) => (printed += text) })
  return { code, printed }
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('results', () => {
  test('a budget is an upper bound for costs and a lower bound for gains', () => {
    expect([kept.ok, missed.ok, free.ok]).toEqual([true, false, true])
    expect(result('a', 5, { unit: 'ms', samples: 1, budget: 5 }).ok).toBe(true)
    expect(result('a', 5.1, { unit: 'ms', samples: 1, budget: 5 }).ok).toBe(false)
  })

  test('what is no number is no result', () => {
    expect(() => result('a', Number.NaN, { unit: 'ms', samples: 1 })).toThrow('a was measured as NaN')
  })

  test('quantiles are values that occurred', () => {
    const samples = [5, 1, 4, 2, 3]
    expect([0, 0.5, 0.99, 1].map((p) => quantile(samples, p))).toEqual([1, 3, 5, 5])
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2)
    expect(() => quantile([], 0.5)).toThrow('no samples')
  })
})

test('--json prints one whole result a line and nothing else', async () => {
  const { code, printed } = await run({ a: group(kept), b: group(missed) }, true)
  expect(
    printed
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([kept, missed])
  expect(code).toBe(0)
})

test('the table says what is measured, aligns, and marks a miss without failing', async () => {
  const { code, printed } = await run({ a: group(kept, missed, free) }, false)
  expect(printed).toContain('Measures nothing.\n  Leaves out everything.')
  expect(table([kept, missed, free]).split('\n')).toEqual([
    '  stop p99     1.23  ms  n=200  budget 5.00 ms  ok',
    '  throughput  40.00  %   n=3    budget 50.00 %  MISSED  against bare XADD',
    '  size        1,235  KB  n=1',
    '',
  ])
  expect(printed).toContain('1 missed their budget')
  expect(code).toBe(0)
})

test('a group that breaks fails the run, and the others still run', async () => {
  const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const broken = () => Promise.reject(new Error('no engine'))
  const { code, printed } = await run({ broken, empty: group(), fine: group(kept) }, true)
  expect(code).toBe(1)
  expect(printed).toContain('"stop p99"')
  const messages = told.mock.calls.map(([text]) => String(text)).join('')
  expect(messages).toContain('The benchmark group broken could not run: Error: no engine')
  expect(messages).toContain('The benchmark group empty could not run: Error: it gave no result')
})

test('every group of this repository can be loaded and says what it measures', async () => {
  for (const name of groupNames()) {
    const { about: own } = await loadGroup(name)
    expect(own).toEqual({ measures: expect.any(String), leavesOut: expect.any(String) })
  }
})
