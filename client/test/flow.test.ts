/** The way of a person through the app, in Chromium at 360×740, over a real relay and Redis. The runners play a script. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Ground, type Phone } from './ground.ts'
import type { ScriptedRunner } from './scripted-runner.ts'
import { moved, task } from './story.ts'
import { until } from './until.ts'

let ground: Ground
let laptop: ScriptedRunner
let cloud: ScriptedRunner

beforeAll(async () => {
  ground = await Ground.open()
  laptop = await ground.runner({
    name: 'laptop',
    workspaces: [{ path: '/home/ada/shop', name: 'shop', branch: 'main' }],
  })
  cloud = await ground.runner({ name: 'cloud-2', pools: ['cloud'] })
})

afterAll(() => ground.close())

const message = (page: Page): ReturnType<Page['getByLabel']> => page.getByLabel('Message')
const button = (page: Page, name: string | RegExp): ReturnType<Page['getByRole']> =>
  page.getByRole('button', { name })

/** Starts a session from the phone and plays its beginning. */
async function begun(page: Page, text: string): Promise<string> {
  await message(page).fill(text)
  await button(page, 'New session').click()
  const sid = await laptop.take()
  await laptop.receive(sid, 'start')
  await laptop.receive(sid, 'prompt')
  await page.waitForURL(`**/s/${sid}`)
  return sid
}

describe('pairing', () => {
  test('F68, C14: opening the link pairs, and the secret leaves the address bar', async () => {
    const { page, errors } = await ground.phone()
    await page.goto(await ground.link())
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    expect(page.url()).toBe(`${ground.origin}/`)
    expect(await page.evaluate(() => history.length)).toBeLessThanOrEqual(2)
    await page.reload()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    expect(errors).toEqual([])
  })

  test('C14: without a link it says how to get one, and takes a pasted one', async () => {
    const { page } = await ground.phone()
    await page.goto(ground.origin)
    await page.getByText('baton pair').waitFor()
    await page.getByLabel('Pairing link').fill('http://nowhere/#pair=short')
    await button(page, 'Pair').click()
    await page.getByText('The pairing link is incomplete or damaged').waitFor()
    await page.getByLabel('Pairing link').fill(await ground.link())
    await button(page, 'Pair').click()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
  })

  test('a used link is refused in words that say what to do', async () => {
    const link = await ground.link()
    const first = await ground.phone()
    await first.page.goto(link)
    await first.page.getByRole('heading', { name: 'Sessions' }).waitFor()
    const second = await ground.phone()
    await second.page.goto(link)
    await second.page.getByText('Make a new one: baton pair').waitFor()
  })

  test('F70, C14: a second link asks before it replaces the account', async () => {
    const { page } = await ground.paired()
    await page.goto(await ground.link())
    await page.getByText('This device is paired already').waitFor()
    await button(page, 'Keep my account').click()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
  })

  test('C14: a phone lets another device join; a revoked one is told, and can pair again', async () => {
    const { page } = await ground.paired()
    await page.getByRole('link', { name: 'Settings' }).click()
    await button(page, 'Pair another device').click()
    await button(page, 'Show link').click()
    await page.getByRole('img', { name: 'QR code of the pairing link' }).waitFor()
    const link = await page.getByTestId('pairing-link').innerText()
    const other = await ground.phone({ agent: 'iPhone' })
    await other.page.goto(link)
    await other.page.getByRole('heading', { name: 'Sessions' }).waitFor()
    await button(page, 'Done').click()
    await page
      .getByText(/paired just now · seen/)
      .first()
      .waitFor()
    await button(page, 'Revoke iPhone').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await button(page, 'Revoke iPhone').waitFor({ state: 'detached' })
    await other.page.getByText('This device was removed from the account').waitFor()
    await message(other.page).fill('Too late')
    await expect.poll(() => button(other.page, 'Start new session').isDisabled()).toBe(true)
    await other.page.getByText('This device was removed and can send nothing more.').waitFor()
    other.page.on('dialog', (dialog) => void dialog.accept())
    await button(other.page, 'Pair again').click()
    await other.page.getByLabel('Pairing link').waitFor()
  })
})

describe('a session', () => {
  let phone: Phone
  let sid: string

  beforeAll(async () => {
    phone = await ground.paired()
    await message(phone.page).fill('Fix the prices')
    await button(phone.page, 'New session').click()
    sid = await task(laptop, 'npm test -- --run prices')
  })

  test('F34, I10: waits for a decision on the whole command, and the tap reaches the runner signed', async () => {
    const { page } = phone
    const card = page.getByRole('region', { name: /^Approval/ })
    await card.waitFor()
    expect(await card.getByRole('region', { name: 'Command', exact: true }).innerText()).toBe(
      'npm test -- --run prices',
    )
    for (const name of ['Deny', 'Approve']) {
      const box = await card.getByRole('button', { name, exact: true }).boundingBox()
      expect(box?.height).toBeGreaterThanOrEqual(44)
    }
  })

  test('F36: the card is there again after a reload', async () => {
    await phone.page.reload()
    await button(phone.page, 'Approve').waitFor()
  })

  test('F44, C4: moves to another runner while it waits, under one id', async () => {
    const { page } = phone
    await button(page, 'Runner: laptop').click()
    await page.getByRole('radio', { name: 'cloud-2' }).check()
    await button(page, 'Move').click()
    await moved(laptop, cloud, sid)
    await page.getByText(/^moved to cloud-2 · \d+ ms · 41 KB$/).waitFor()
    await button(page, 'Runner: cloud-2').waitFor()
    await button(page, 'Approve').waitFor()
  })

  test('F33, F37: a tap while the relay is away is held and delivered; the card goes on every device', async () => {
    const other = await ground.paired()
    await other.page.goto(`${ground.origin}/s/${sid}`)
    await button(other.page, 'Approve').waitFor()
    await ground.relayAway()
    await button(phone.page, 'Approve').click()
    await phone.page.getByText(/^Approved\. (Sending|Kept here)/).waitFor()
    await phone.page.getByText('Kept here and sent when').waitFor()
    await ground.relayBack()
    const { effect, device } = (await cloud.receive(sid, 'decision')) as { effect: number; device: string }
    await cloud.decided(sid, effect, true, device)
    for (const { page } of [phone, other]) {
      await page.getByRole('region', { name: /^Approval/ }).waitFor({ state: 'detached' })
    }
    const run = await cloud.call(sid, 'bash', { command: 'npm test -- --run prices' }, effect)
    await cloud.did(sid, run, 'ok\n', { exit_code: 0 }, 1900)
    await button(phone.page, /Ran npm test/).waitFor()
  })

  test('F13: a streamed answer shows while it comes, and once when it is there', async () => {
    const { page } = phone
    const effect = await cloud.think(sid)
    cloud.stream(sid, effect, 'The cause was one rou')
    await page.getByText('The cause was one rou', { exact: true }).waitFor()
    await cloud.say(sid, effect, 'The cause was one rounding too many.')
    await page.getByText('The cause was one rounding too many.').waitFor()
    expect(await page.getByText(/The cause was/).count()).toBe(1)
  })

  test('C15: Stop stands where Send was while the agent works and nothing is typed; with text it queues', async () => {
    const { page } = phone
    await button(page, 'Stop').waitFor()
    await message(page).fill('and then the docs')
    await button(page, 'Queue').click()
    await page.getByRole('list', { name: 'Queued' }).getByText('and then the docs').waitFor()
    await page.getByRole('list', { name: 'Queued' }).getByText('Waits for the end of the turn').waitFor()
    await button(page, 'Stop').click()
    await button(page, 'Stopping…').waitFor()
    await cloud.receive(sid, 'stop')
    await cloud.receive(sid, 'prompt')
    await page.getByRole('list', { name: 'Queued' }).waitFor({ state: 'detached' })
    await cloud.rest(sid)
    await button(page, 'Send').waitFor()
  })

  test('a long result is fetched whole on demand, and its lines are virtual', async () => {
    const { page } = phone
    const lines = Array.from({ length: 6000 }, (_, i) => `line ${i}`)
    const effect = await cloud.call(sid, 'bash', { command: 'seq 6000' })
    await cloud.didAtLength(sid, effect, lines.join('\n'))
    await button(page, /Ran seq 6000/).click()
    await button(page, /^Load all of it/).click()
    await button(page, 'Show all 6,000 lines').click()
    await page.getByText('line 5', { exact: true }).waitFor()
    expect(await page.locator('.output .line').count()).toBeLessThan(200)
  })

  test('I10: a call that does not fit its digest can’t be approved, only denied', async () => {
    const { page } = phone
    const effect = await cloud.ask(sid, 'bash', { command: 'ls' }, 'f'.repeat(64))
    await page.getByText('It can’t be approved').waitFor()
    expect(await button(page, 'Approve').isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Deny', exact: true }).click()
    const decision = (await cloud.receive(sid, 'decision')) as { approved: boolean; device: string }
    expect(decision.approved).toBe(false)
    await cloud.decided(sid, effect, false, decision.device)
    await page.getByRole('region', { name: /^Approval/ }).waitFor({ state: 'detached' })
  })

  test('F35: every approval that waits has a card', async () => {
    const { page } = phone
    await cloud.ask(sid, 'bash', { command: 'make one' })
    await cloud.ask(sid, 'write', { path: 'two.txt', content: 'two' })
    const cards = page.getByRole('region', { name: /^Approval/ })
    await until('both are there', async () => (await cards.count()) === 2)
    expect(await cards.nth(1).innerText()).toContain('two.txt')
  })

  test('nothing on the way broke the content security policy or threw', () => {
    expect(phone.errors).toEqual([])
  })
})

describe('without connection', () => {
  test('F3, F11: what was seen is there offline after a reload, and what was missed comes once when the relay is back', async () => {
    const { page } = await ground.paired()
    const sid = await begun(page, 'Something to keep')
    await laptop.say(sid, await laptop.think(sid), 'Seen before.')
    await page.getByText('Seen before.').waitFor()
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => true))
    await until('the shell is cached', () =>
      page.evaluate(async () => {
        const names = await caches.keys()
        const kept = await Promise.all(
          names.map(async (name) => (await (await caches.open(name)).keys()).length),
        )
        return kept.some((count) => count > 5)
      }),
    )
    await ground.relayAway()
    await page.reload()
    await page.getByText('Seen before.').waitFor()
    await page.getByText('No connection to the relay').waitFor()
    await ground.relayBack()
    await until('the runner is back', () => laptop.isConnected)
    await laptop.say(sid, await laptop.think(sid), 'Missed meanwhile.')
    await page.getByText('Missed meanwhile.').first().waitFor()
    expect(await page.getByText('Seen before.').count()).toBe(1)
    expect(await page.getByText('Missed meanwhile.').count()).toBe(1)
    await page.getByText('No connection to the relay').waitFor({ state: 'detached' })
  })

  test('F2: what the system says of the network shows at once: no green dot, and nothing is called sending', async () => {
    const { page, context } = await ground.paired()
    await begun(page, 'Something in a tunnel')
    await context.setOffline(true)
    await page.getByText('This device is offline.').waitFor({ timeout: 2_500 })
    await page.locator('.session-state').getByText('Offline').waitFor()
    await page.getByLabel('Message').fill('said in the tunnel')
    await button(page, /^(Send|Queue)$/).click()
    await page.getByText('Kept here; sent when the connection is back').waitFor()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByRole('img', { name: 'Not connected' }).waitFor()
    await context.setOffline(false)
    await page.getByRole('img', { name: 'Connected', exact: true }).waitFor()
  })

  test('F14, I6, C7: a session begun offline survives a reload and is made once', async () => {
    const { page } = await ground.paired()
    await page.getByLabel('Runner').waitFor()
    await ground.relayAway()
    await message(page).fill('Typed in a tunnel')
    await button(page, 'New session').click()
    await page.getByRole('list', { name: 'Queued' }).getByText('Typed in a tunnel').waitFor()
    const path = new URL(page.url()).pathname
    await ground.relayBack()
    await page.reload()
    const sid = await laptop.take()
    expect(path).toBe(`/s/${sid}`)
    await laptop.receive(sid, 'start')
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: 'Typed in a tunnel' })
    await page.locator('.transcript-row').getByText('Typed in a tunnel').waitFor()
    await page.getByRole('list', { name: 'Queued' }).waitFor({ state: 'detached' })
    expect(laptop.held.get(sid)?.inbox).toEqual([])
  })

  test('F15, C6: a draft survives a reload, each session has its own', async () => {
    const { page } = await ground.paired()
    await message(page).fill('a draft of a new session')
    // At once: what is written a moment later would be cut off.
    await page.reload()
    await until(
      'the draft is back',
      async () => (await message(page).inputValue()) === 'a draft of a new session',
    )
    await page.getByRole('button', { name: 'Start new session' }).click()
    await page.waitForURL('**/s/*')
    await laptop.release(await laptop.take(new URL(page.url()).pathname.slice('/s/'.length)), 'idle')
    await message(page).fill('a draft in it')
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByRole('button', { name: 'Start new session' }).waitFor()
    expect(await message(page).inputValue()).toBe('')
    await page.goBack()
    await until('its own is back', async () => (await message(page).inputValue()) === 'a draft in it')
  })

  test('F1: a phone that comes back to the foreground asks the relay at once', async () => {
    const { page } = await ground.phone()
    const sent: string[] = []
    page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => sent.push(payload.toString())))
    await page.goto(await ground.link())
    await page.getByRole('img', { name: 'Connected', exact: true }).waitFor()
    await until('it has asked for the list', () => sent.some((frame) => frame.includes('"list"')))
    sent.length = 0
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
    await until('it asks again, whether the socket lives and what there is', () =>
      ['"ping"', '"list"'].every((what) => sent.some((frame) => frame.includes(what))),
    )
  })

  test('F2, F8: a short break shows no banner; a long one says what happens to what is typed', async () => {
    const { page } = await ground.paired()
    await ground.relayAway()
    await page
      .getByRole('img', { name: 'Not connected' })
      .or(page.getByRole('img', { name: 'Connecting' }))
      .waitFor()
    expect(await page.getByText('No connection to the relay').count()).toBe(0)
    await page.getByText('What you type is kept here and sent when it is back').waitFor()
    await ground.relayBack()
    await button(page, 'Try now').click()
    await page.getByRole('img', { name: 'Connected', exact: true }).waitFor()
  })
})
