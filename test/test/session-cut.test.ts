/** Commands that are ended in their middle: what they had printed by then reaches the model and whoever reads. */
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectError } from '@baton/shared/guest.ts'
import { newDevice, sessionKey } from '@baton/shared/keys.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import { Link } from '@baton/runner/daemon/link.ts'
import { Cluster } from '../src/cluster.ts'
import { Trip } from '../src/trip.ts'
import { until } from '../src/until.ts'

/** Prints much, tells that it has, and never ends. */
const LONG = 'echo first; seq 1 9000; echo last; exec sleep 1000'

const errors = (entries: Opened[]): EffectError[] =>
  entries.flatMap((entry) => (entry.kind === 'outcome' ? (entry.body.error ?? []) : []))

/** What the model was sent last. */
async function lastRequest({ model }: Cluster): Promise<string> {
  const { requests } = await model.state()
  expect(requests.filter(({ end }) => end === 'invalid')).toEqual([])
  return JSON.stringify(requests.at(-1)?.body)
}

/** Watches as a phone does, until all that the command prints has been shown. */
async function untilShown({ client, relay }: Cluster, sid: string): Promise<void> {
  const { account } = client
  let shown = ''
  const watcher = new Link({
    ...{ origin: relay.url, account, device: newDevice(account), about: { name: 'watcher', kind: 'cli' } },
    onNotice: (notice) => {
      if (notice.t !== 'delta') return
      shown = JSON.stringify(openJson(sessionKey(account, sid), notice.body, place.delta(sid, notice.effect)))
    },
  })
  watcher.connection.start()
  await watcher.ready()
  await watcher.ask('watch', { sid, from: 1 })
  await until('all of it was shown', () => shown.includes('last'))
  watcher.connection.close()
}

it('H17: Stop keeps head and tail of what the command had printed, for the model and in the journal', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const { client } = cluster
  const trip = await Trip.begin(cluster, await cluster.runner('laptop'))
  const prompt = await trip.ask(LONG)
  await untilShown(cluster, trip.sid)
  await client.command(trip.sid, 'stop', {})
  expect(await trip.over(prompt)).toBe('error: stopped')
  const [error] = errors(await client.entries(trip.sid))
  expect(error?.printed).toMatch(/^first\n1\n2\n.*\n… \d+ characters left out …\n.*\n9000\nlast\n$/s)
  expect(error?.printed?.length).toBeLessThan(8_100)
  await trip.errand('echo goes on')
  expect(await lastRequest(cluster)).toMatch(/Stopped by the user.*had printed.*first\\n1\\n2.*9000\\nlast/)
})

it('H17 H4: a runner that ends keeps it too: the next one tells the model that it may have run, and what it had printed', async () => {
  await using cluster = await Cluster.open({ script: 'errand', env: { BATON_DRAIN_WITHIN_MS: '1' } })
  const { client } = cluster
  const laptop = await cluster.runner('laptop')
  const trip = await Trip.begin(cluster, laptop)
  const prompt = await trip.ask(LONG)
  await untilShown(cluster, trip.sid)
  const cloud = await cluster.runner('cloud')
  laptop.process.kill('SIGTERM')
  expect((await laptop.process.exit).code).toBe(0)
  expect(await trip.over(prompt)).toBe('error: interrupted')
  expect((await client.info(trip.sid)).holder).toBe(cloud.id)
  const found = errors(await client.entries(trip.sid))
  expect(found).toHaveLength(1)
  expect(found[0]).toMatchObject({
    code: 'interrupted',
    printed: expect.stringMatching(/^first\n.*last\n$/s),
  })
  expect(await lastRequest(cluster)).toMatch(
    /interrupted, may have run.*had printed.*first\\n1\\n2.*9000\\nlast/,
  )
})
