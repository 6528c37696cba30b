import { describe, expect, it } from 'vitest'
import type { Span, Trace } from '@baton/shared/trace.ts'
import { waterfall } from '../src/cli/waterfall.ts'
import { widthOf } from '../src/cli/term/text.ts'

const ZERO = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }
const totals: Trace['totals'] = {
  ...{
    requests: 1,
    repeated: 0,
    cut_off: 0,
    tools: 1,
    handoffs: 1,
    model_ms: 1000,
    tool_ms: 500,
    people_ms: 3_600_000,
  },
  ...{ ...ZERO, input_tokens: 1500, output_tokens: 310, cost_usd: 0.0123 },
}
const HOUR = 3_600_000
const spans: Span[] = [
  {
    kind: 'llm',
    name: 'claude-sonnet',
    start_ms: 0,
    end_ms: 1000,
    end: 'ok',
    usage: { ...ZERO, input_tokens: 1500, output_tokens: 310 },
  },
  {
    kind: 'decision',
    name: 'bash',
    detail: 'rm -rf build 🎉\u001b[2J',
    start_ms: 1000,
    end_ms: 1000 + HOUR,
    end: 'denied',
  },
  {
    kind: 'tool',
    name: 'bash',
    detail: '漢字漢字漢字漢字漢字漢字漢字漢字',
    start_ms: 1000 + HOUR,
    end_ms: 1500 + HOUR,
    end: 'ok',
  },
  {
    kind: 'handoff',
    name: '',
    from: 'a',
    to: 'b',
    bytes: 40_000,
    start_ms: 1500 + HOUR,
    end_ms: 1564 + HOUR,
    end: 'ok',
  },
  { kind: 'llm', name: 'claude-sonnet', attempt: 2, start_ms: 1600 + HOUR },
]
const draw = (columns: number): string[] =>
  waterfall(
    { spans, totals },
    { columns, now: 2600 + HOUR, nameOf: (id) => (id === 'a' ? 'laptop' : 'cloud-2') },
  )

describe('the waterfall', () => {
  it.each([120, 80, 40, 10])('is never wider than a terminal of %i columns (at least 30)', (columns) => {
    for (const line of draw(columns)) expect(widthOf(line), line).toBeLessThanOrEqual(Math.max(30, columns))
  })

  it('shows what ran, how long, between whom, and what it cost', () => {
    const text = draw(100).join('\n')
    for (const part of [
      'claude-sonnet',
      '1.0 s',
      '1.5k→310',
      'laptop → cloud-2',
      '64 ms',
      '39 KB',
      '$0.0123',
      '1 h 0 min',
      'open',
    ])
      expect(text).toContain(part)
    expect(draw(40).join('\n')).toContain('500 ms')
  })

  it('keeps which attempt it was, and tells waiting for a decision from having nothing to do', () => {
    for (const columns of [40, 64, 80]) expect(draw(columns).join('\n')).toContain('(attempt 2)')
    const idle: Span = { kind: 'prompt', name: '', start_ms: 0, end_ms: HOUR }
    const ask: Span = { kind: 'decision', name: 'bash', start_ms: HOUR, end_ms: HOUR + 5000 }
    const text = waterfall({ spans: [idle, ask], totals }, { columns: 100, now: 0, nameOf: (id) => id }).join(
      '\n',
    )
    expect(text).toContain('waited for decisions 5.0 s · without a prompt 1 h 0 min')
  })

  it('H18: says of a call that nobody was asked for by what it was allowed', () => {
    const ran: Span = { kind: 'tool', name: 'bash', start_ms: 0, end_ms: 5, end: 'ok' }
    const lines = waterfall(
      { spans: [{ ...ran, allowed: { mode: 'edit' } }, ran], totals },
      { columns: 100, now: 0, nameOf: (id) => id },
    )
    expect(lines.filter((line) => line.includes('mode edit'))).toHaveLength(1)
  })

  it('I8: tells requests that were cut off, and may be billed, from those that failed', () => {
    const sums = (repeated: number, cut_off: number): string =>
      waterfall(
        { spans: [], totals: { ...totals, requests: 4, repeated, cut_off } },
        { columns: 100, now: 0, nameOf: (id) => id },
      ).join('\n')
    expect(sums(2, 1)).toContain('4 model calls (2 repeated, 1 of them cut off)')
    expect(sums(2, 0)).toContain('4 model calls (2 repeated)')
  })

  it('lets no escape sequence through', () => {
    // oxlint-disable-next-line no-control-regex -- looks for control characters
    expect(draw(120).join('')).not.toMatch(/[\u0000-\u001f\u007f]/)
  })

  it('gives an hour of waiting no more room than a part of the work, so that seconds can be seen', () => {
    const bars = draw(100)
    expect(bars.join('\n')).toContain('long waits are drawn short')
    const drawn = bars.filter((line) => !line.includes('█ model'))
    const cells = (glyph: string): number => drawn.join('').split(glyph).length - 1
    expect(cells('░')).toBeLessThan(cells('█') / 3)
    expect(cells('▓')).toBeGreaterThan(1)
  })

  it('has a line for a journal without any span', () => {
    expect(waterfall({ spans: [], totals }, { columns: 80, now: 0, nameOf: (id) => id }).join('')).toContain(
      '1 model call ',
    )
  })
})
