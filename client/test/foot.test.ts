/** What stands below the transcript when a tap can't be stored, and when the session has ended; in Chromium, over a real relay. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Ground } from './ground.ts'
import type { ScriptedRunner } from './scripted-runner.ts'
import { until } from './until.ts'

let ground: Ground
let laptop: ScriptedRunner
let page: Page
let errors: string[]

beforeAll(async () => {
  ground = await Ground.open()
  laptop = await ground.runner({
    name: 'laptop',
    workspaces: [
      { path: '/home/ada/shop', name: 'shop' },
      { path: '/home/ada/docs', name: 'docs' },
    ],
  })
  await ground.runner({ name: 'cloud-2', pools: ['cloud'] })
  ;({ page, errors } = await ground.paired())
})

afterAll(() => ground.close())

const button = (name: string | RegExp): ReturnType<Page['getByRole']> => page.getByRole('button', { name })
const message = (): ReturnType<Page['getByLabel']> => page.getByLabel('Message')

async function begun(text: string): Promise<string> {
  await page.goto(ground.origin)
  await page.getByLabel('Workspace').selectOption('docs')
  await message().fill(text)
  await button('New session').click()
  const sid = await laptop.take()
  await laptop.receive(sid, 'start')
  await laptop.receive(sid, 'prompt')
  return sid
}

type Real = (this: IDBDatabase, ...with_: Parameters<IDBDatabase['transaction']>) => IDBTransaction

/** From here on IndexedDB refuses every write to the outbox, until the result is called. */
async function fillDisk(): Promise<() => Promise<void>> {
  await page.evaluate(() => {
    const real = Reflect.get(IDBDatabase.prototype, 'transaction') as Real
    IDBDatabase.prototype.transaction = function (stores, mode, options) {
      if (mode === 'readwrite' && [stores].flat().includes('outbox')) {
        throw new DOMException('The disk is full.', 'QuotaExceededError')
      }
      return real.call(this, stores, mode, options)
    }
    Object.assign(globalThis, { freeDisk: () => void (IDBDatabase.prototype.transaction = real) })
  })
  return () => page.evaluate('freeDisk()')
}

function draftOf(sid: string): Promise<unknown> {
  return page.evaluate(
    (key) =>
      new Promise((resolve) => {
        const open = indexedDB.open('baton')
        open.onsuccess = () => {
          const get = open.result.transaction('drafts').objectStore('drafts').get(key)
          get.onsuccess = () => resolve(get.result)
        }
      }),
    sid,
  )
}

describe('a tap that the browser can’t store', () => {
  let sid: string

  beforeAll(async () => {
    sid = await begun('Make it')
  })

  test('F32: a decision says that it was not kept, and reaches the runner when it is tried again', async () => {
    const effect = await laptop.ask(sid, 'bash', { command: 'make' })
    await button('Approve').waitFor()
    const free = await fillDisk()
    await button('Approve').click()
    const alert = page.getByRole('alert')
    await alert.getByText(/^Decision not kept: .*Free some space.*The disk is full\./).waitFor()
    expect(await button('Approve').isEnabled()).toBe(true)
    expect(await page.getByText(/^Approved\./).count()).toBe(0)
    await button('Try again').click()
    await alert.waitFor()
    await free()
    await button('Try again').click()
    const { device, approved } = (await laptop.receive(sid, 'decision')) as {
      device: string
      approved: boolean
    }
    expect(approved).toBe(true)
    await alert.waitFor({ state: 'detached' })
    await laptop.decided(sid, effect, true, device)
    await page.getByRole('region', { name: /^Approval/ }).waitFor({ state: 'detached' })
    expect(laptop.held.get(sid)?.inbox).toEqual([])
  })

  test('F32: a decision that another device gives meanwhile takes the message away', async () => {
    const effect = await laptop.ask(sid, 'bash', { command: 'make again' })
    await button(/^Deny$/).waitFor()
    const free = await fillDisk()
    await button(/^Deny$/).click()
    await page.getByRole('alert').waitFor()
    await laptop.decided(sid, effect, true, 'another')
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await free()
  })

  test('F32: a stop and a move say so too', async () => {
    await button('Stop').waitFor()
    let free = await fillDisk()
    await button('Stop').click()
    await page.getByText(/^Stop not kept: /).waitFor()
    await button('Stop').waitFor()
    await free()
    await button('Try again').click()
    await laptop.receive(sid, 'stop')

    free = await fillDisk()
    await button('Runner: laptop').click()
    await page.getByRole('radio', { name: 'cloud-2' }).check()
    await page.getByRole('button', { name: 'Move', exact: true }).click()
    await page.getByText(/^Move not kept: /).waitFor()
    await free()
    await button('Try again').click()
    expect(await laptop.receive(sid, 'move')).toEqual({ label: 'cloud-2' })
    expect(errors).toEqual([])
  })
})

describe('a session that has ended', () => {
  test('C18: takes nothing more, says so, and hands its draft to a new session in the same workspace (F15)', async () => {
    const sid = await begun('Finish it')
    await laptop.ask(sid, 'bash', { command: 'make' })
    await button('Approve').waitFor()
    await message().fill('and the changelog')
    await laptop.append(sid, 'event', { type: 'done', data: null }, { hint: { status: 'done' } })
    await page.getByText('This session has ended.').waitFor()
    for (const gone of ['Stop', 'Send', 'Queue', 'Approve', /^Runner/]) {
      expect(await button(gone).count(), String(gone)).toBe(0)
    }
    expect(await message().count()).toBe(0)
    await page.getByText('and the changelog').waitFor()

    await until('the draft is on the disk', () => draftOf(sid))
    await page.reload()
    await page.getByText('and the changelog').waitFor()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await message().fill('typed before')
    await page.getByLabel('Workspace').selectOption('shop')
    await page.getByRole('link', { name: /Finish it/ }).click()
    await button('New session with this draft').click()
    await until(
      'the draft is there, before what stood there',
      async () => (await message().inputValue()) === 'and the changelog\ntyped before',
    )
    await until(
      'the workspace is chosen',
      async () => (await page.getByLabel('Workspace').inputValue()) === '/home/ada/docs',
    )
    await message().fill('')
    await page.goto(`${ground.origin}/s/${sid}`)
    await button('New session like this').waitFor()
    expect(await page.getByText('and the changelog').count()).toBe(0)
    await button('New session like this').click()
    await until('its prompt is there', async () => (await message().inputValue()) === 'Finish it')
    await message().fill('')
  })

  test('C8: a prompt that was too late is refused in words, and goes back to the draft', async () => {
    const sid = await begun('Fail at it')
    await button('Stop').waitFor()
    await ground.relayAway()
    await message().fill('too late')
    await button('Queue').click()
    await page.getByRole('list', { name: 'Queued' }).getByText('too late').waitFor()
    await page.goto('about:blank')
    // The phone is elsewhere while the session ends.
    await ground.relayBack()
    await until('the runner is back', () => laptop.isConnected)
    await laptop.append(
      sid,
      'event',
      { type: 'failed', data: { message: 'It broke.' } },
      { hint: { status: 'failed' } },
    )
    await page.goto(`${ground.origin}/s/${sid}`)
    await page.getByText('The session has ended; it takes no more commands.').waitFor()
    expect(await button('Try again').count()).toBe(0)
    await button('Back to draft').click()
    await button('New session with this draft').waitFor()
    expect(await page.locator('.ended-draft').innerText()).toBe('too late')
    expect(errors).toEqual([])
  })
})

test('a session that is not there says so, takes no prompt and leads back to the list', async () => {
  await page.goto(`${ground.origin}/s/nosuchsession`)
  await page.getByRole('heading', { name: 'No such session' }).waitFor()
  await page.getByText('This session is not in your account.').waitFor()
  expect(await message().count()).toBe(0)
  expect(await button('Session menu').count()).toBe(0)
  expect(await page.getByText('Waits to be sent').count()).toBe(0)
  await page.getByRole('link', { name: 'All sessions' }).click()
  await page.getByRole('heading', { name: 'Sessions' }).waitFor()
})
