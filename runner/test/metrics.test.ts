import { afterEach, describe, expect, test } from 'vitest'
import { metricsAddress, serveMetrics, type RunningMetrics } from '../src/daemon/metrics.ts'
import { happened } from '../src/happenings.ts'

const served: RunningMetrics[] = []
afterEach(async () => {
  for (const metrics of served.splice(0)) await metrics.close()
})
const numbers = { held: 3, capacity: 8, waiting: 2, connected: true }
async function serve(): Promise<RunningMetrics> {
  const metrics = await serveMetrics({ host: '127.0.0.1', port: 0 }, () => numbers)
  served.push(metrics)
  return metrics
}
async function value({ url }: RunningMetrics, line: string): Promise<number> {
  const text = await (await fetch(url)).text()
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
  return found === undefined ? Number.NaN : Number(found.slice(line.length + 1))
}

describe('metrics', () => {
  test('R5: tell what is held, and count what happens from then on', async () => {
    happened('offer', {})
    const metrics = await serve()
    expect(await value(metrics, 'baton_runner_sessions_held')).toBe(3)
    expect(await value(metrics, 'baton_runner_capacity')).toBe(8)
    expect(await value(metrics, 'baton_runner_sessions_waiting')).toBe(2)
    expect(await value(metrics, 'baton_runner_connected')).toBe(1)
    expect(await value(metrics, 'baton_runner_offers_total')).toBe(0)
    happened('offer', {})
    happened('claim', { waited_ms: 1500 })
    happened('ending', { how: 'parked' })
    happened('arrival', { blackout_ms: 40 })
    happened('effect', { kind: 'llm', ok: true, ms: 900, tokens: { input_tokens: 12, output_tokens: 5 } })
    happened('effect', { kind: 'llm', ok: true, ms: 90, tokens: { input_tokens: 3 } })
    happened('effect', { kind: 'tool', ok: false, ms: 7 })
    expect(await value(metrics, 'baton_runner_offers_total')).toBe(1)
    expect(await value(metrics, 'baton_runner_wait_seconds_sum')).toBe(1.5)
    expect(await value(metrics, 'baton_runner_endings_total{how="parked"}')).toBe(1)
    expect(await value(metrics, 'baton_runner_handoff_blackout_seconds_bucket{le="0.05"}')).toBe(1)
    expect(await value(metrics, 'baton_runner_handoff_blackout_seconds_bucket{le="0.02"}')).toBe(0)
    expect(await value(metrics, 'baton_runner_effects_total{kind="llm",result="ok"}')).toBe(2)
    expect(await value(metrics, 'baton_runner_effects_total{kind="tool",result="error"}')).toBe(1)
    expect(await value(metrics, 'baton_runner_model_tokens_total{type="input_tokens"}')).toBe(15)
  })

  test('are of this machine alone unless told otherwise', () => {
    expect(metricsAddress('9464')).toEqual({ host: '127.0.0.1', port: 9464 })
    expect(metricsAddress('0.0.0.0:9464')).toEqual({ host: '0.0.0.0', port: 9464 })
    expect(metricsAddress('[::1]:9464')).toEqual({ host: '::1', port: 9464 })
    for (const text of ['', 'x', '1:', ':', '99999', '-1']) expect(() => metricsAddress(text)).toThrow('PORT')
  })

  test('D4: a port that is taken has its own code; other paths are not there', async () => {
    const { url } = await serve()
    const port = Number(new URL(url).port)
    await expect(serveMetrics({ host: '127.0.0.1', port }, () => numbers)).rejects.toMatchObject({
      code: 'port-taken',
    })
    expect((await fetch(url.replace('/metrics', '/'))).status).toBe(404)
  })
})
