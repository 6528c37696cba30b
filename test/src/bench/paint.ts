/** From an append on a runner to pixels on a phone that watches the session. */
import type { Page } from 'playwright-core'
import { newAccount, newId, newPairing, pairingLink, sessionKey } from '@baton/shared/keys.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { openBrowser, openPhone } from '../browser.ts'
import { TestClient } from '../client.ts'
import { Ground } from '../processes.ts'
import { until } from '../until.ts'
import { quantile, result, type BenchAbout, type BenchResult } from './result.ts'

export const about: BenchAbout = {
  measures:
    'from before a runner seals and appends an entry until the frame that shows it in Chromium at 360×740 is done; relay, Redis and browser on this machine',
  leavesOut: 'networks, real phones, and the time until the model or tool had something to say',
}

const SAMPLES = 100
const WARM_UP = 10
const BUDGET_MS = 30

export async function* paintBench(): AsyncGenerator<BenchResult> {
  const ground = await Ground.open()
  await using _ = ground
  const relay = await ground.relay()
  const account = newAccount()
  await using runner = await TestClient.open(relay.url, account)
  const sid = newId()
  const key = sessionKey(account, sid)
  const meta = { title: 'paint', agent: 'coder', mode: 'ask', workspace: '/w' }
  await runner.link.ask('create', { sid, meta: sealJson(key, meta, place.meta(sid)), place: {} })
  const { epoch, seq } = await runner.link.ask('claim', { sid })
  let tail = seq
  const append = async (text: string): Promise<void> => {
    const body = sealJson(
      key,
      { type: 'notice', data: { message: text } },
      place.entry(sid, 'event', tail + 1),
    )
    const entries = [{ kind: 'event' as const, body, blobs: [] }]
    tail = (await runner.link.ask('append', { sid, epoch, first: tail + 1, entries })).seq
  }
  const renewing = setInterval(
    () => void runner.link.ask('renew', { leases: [{ sid, epoch }] }).catch(() => undefined),
    2000,
  )

  const browser = await openBrowser(ground.environment())
  try {
    const { page } = await openPhone(browser)
    const pairing = newPairing(account)
    await runner.link.ask('pairing', { offer: pairing.offer, box: pairing.box })
    await page.goto(pairingLink(relay.url, pairing))
    await page.getByText('paint').first().click()
    await append('mark-start')
    await page.getByText('mark-start').waitFor()
    await watchForMarks(page)
    const times: number[] = []
    for (let i = 0; i < SAMPLES + WARM_UP; i++) {
      const mark = `mark-${i}-end`
      const began = performance.timeOrigin + performance.now()
      await append(mark)
      const painted = await until(`${mark} is painted`, () => page.evaluate((m) => window.painted[m], mark), {
        every_ms: 5,
      })
      if (i >= WARM_UP) times.push(painted - began)
    }
    const options = { unit: 'ms', samples: times.length }
    yield result('append to painted, p50', quantile(times, 0.5), { ...options, budget: BUDGET_MS })
    yield result('append to painted, p99', quantile(times, 0.99), options)
  } finally {
    clearInterval(renewing)
    await browser.close()
  }
}

declare global {
  interface Window {
    /** Mark → when the frame that shows it was done, milliseconds since 1970. */
    painted: Record<string, number>
  }
}

/** Notes for every mark the time after the frame in which it first stood in the document. */
async function watchForMarks(page: Page): Promise<void> {
  await page.evaluate(() => {
    window.painted = {}
    const found = new Set<string>()
    new MutationObserver((changes) => {
      for (const { addedNodes, target } of changes) {
        for (const node of [...addedNodes, target]) {
          for (const [mark] of (node.textContent ?? '').matchAll(/mark-\d+-end/g)) {
            if (found.has(mark)) continue
            found.add(mark)
            // The callback of a frame runs before its paint; a message posted there arrives after.
            requestAnimationFrame(() => {
              const { port1, port2 } = new MessageChannel()
              port1.onmessage = () => (window.painted[mark] = performance.timeOrigin + performance.now())
              port2.postMessage(null)
            })
          }
        }
      }
    }).observe(document.body, { childList: true, subtree: true, characterData: true })
  })
}
