/** What is shown while it happens, and is in no journal. */
import { describe, it } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { sessionKey, newDevice } from '@baton/shared/keys.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import { Link } from '@baton/runner/daemon/link.ts'
import { Loop } from '../src/loop.ts'
import { noted } from '../src/looks.ts'
import { collecting, tool } from '../src/script-asks.ts'
import { until } from '../src/until.ts'

describe('live output of a tool', () => {
  it('H13: the newest of it is shown while it runs', async () => {
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => (open = resolve))
    await using loop = await Loop.open({
      program: collecting([tool(1, 'build')], 1),
      tools: {
        build: {
          run: async (_input, _signal, { onOutput }) => {
            onOutput?.('x'.repeat(10_000))
            onOutput?.('the end')
            await opened
            return 'built'
          },
        },
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const shown: Json[] = []
    const watcher = new Link({
      ...{ origin: loop.relay.url, account: loop.account, device: newDevice(loop.account) },
      about: { name: 'watcher', kind: 'cli' },
      onNotice: (notice) => {
        if (notice.t !== 'delta') return
        const at = place.delta(sid, notice.effect)
        shown.push(openJson(sessionKey(loop.account, sid), notice.body, at))
      },
    })
    watcher.connection.start()
    await watcher.ready()
    await watcher.ask('watch', { sid, from: 1 })
    const newest = JSON.stringify({ text: `${'x'.repeat(3_993)}the end` })
    await until('the newest output is shown', () => JSON.stringify(shown.at(-1)) === newest)
    watcher.connection.close()
    open()
    await loop.client.untilEntries(sid, 'it ended', noted())
  })
})
