import { expect, test } from 'vitest'
import { until } from '../src/until.ts'

test('gives what the probe gave as soon as it is truthy', async () => {
  let probes = 0
  const value = await until('three probes', () => (++probes === 3 ? { probes } : undefined))
  expect(value).toEqual({ probes: 3 })
})

test('a probe that throws counts as not yet', async () => {
  let probes = 0
  await until('it stops throwing', () => {
    if (++probes < 3) throw new Error('too early')
    return true
  })
  expect(probes).toBe(3)
})

test('gives up with a sentence that says what was awaited and what came last', async () => {
  const never = until('pigs fly', () => Promise.reject(new Error('no wings')), {
    deadline_ms: 1,
    every_ms: 1,
  })
  await expect(never).rejects.toThrow(
    /^gave up waiting until pigs fly, after .*; the last probe threw: no wings$/,
  )
  await expect(until('it is so', () => 0, { deadline_ms: 0 })).rejects.toThrow('the last probe gave 0')
})
