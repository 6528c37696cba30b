/** A laptop with a turn under way and a phone that looks at it, for the tests of a file that imports this. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { Ground, type Phone } from './ground.ts'
import type { ScriptedRunner } from './scripted-runner.ts'

export let ground: Ground
export let laptop: ScriptedRunner
export let phone: Phone
export let page: Page
/** The session at hand. */
export let sid = ''

export const button = (name: string | RegExp, exact = false): ReturnType<Page['getByRole']> =>
  page.getByRole('button', { name, exact })
export const radio = (name: string): ReturnType<Page['getByRole']> => page.getByRole('radio', { name })
export const dialog = (): ReturnType<Page['getByRole']> => page.getByRole('dialog')
export const message = (): ReturnType<Page['getByLabel']> => page.getByLabel('Message')
export const queued = (): ReturnType<Page['getByRole']> => page.getByRole('list', { name: 'Queued' })

beforeAll(async () => {
  ground = await Ground.open()
  laptop = await ground.runner({
    name: 'laptop',
    workspaces: [{ path: '/home/ada/shop', name: 'shop' }],
    models: ['claude-opus-4-5', 'claude-sonnet-4-5'],
  })
  phone = await ground.paired()
  page = phone.page
})

afterAll(() => ground.close())

/** A session of its own for each test, in the middle of a turn. */
export async function begin(text = 'Do it'): Promise<void> {
  if (laptop.held.has(sid)) await laptop.release(sid, 'idle')
  await page.goto(ground.origin)
  await message().fill(text)
  await button('Start new session').click()
  await page.waitForURL('**/s/*')
  sid = await laptop.take(new URL(page.url()).pathname.slice('/s/'.length))
  await laptop.receive(sid, 'start')
  await laptop.receive(sid, 'prompt')
  await button('Stop').waitFor()
}

/** The session at hand is the one that the laptop is offered next. */
export async function taken(): Promise<void> {
  sid = await laptop.take()
}

/** Each target that can be tapped now is large enough, and nothing scrolls sideways (C16). */
export async function fits(): Promise<void> {
  const small = await page.evaluate(() => {
    const root = document.querySelector('dialog[open]') ?? document
    const seen = [...root.querySelectorAll<HTMLElement>('button, select, .segments label, .choice')].filter(
      (element) => element.checkVisibility(),
    )
    return seen
      .filter((element) => element.getBoundingClientRect().height < 43.5)
      .map(
        (element) => `${element.ariaLabel ?? element.innerText}: ${element.getBoundingClientRect().height}`,
      )
  })
  expect(small).toEqual([])
  const wide = await page.evaluate(() => {
    const root = document.querySelector('dialog[open]') ?? document.documentElement
    return root.scrollWidth - root.clientWidth
  })
  expect(wide).toBe(0)
}
