/** What a small screen, a thumb, a keyboard and a long session ask of the app, in Chromium. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Ground, type Phone } from './ground.ts'
import type { ScriptedRunner } from './scripted-runner.ts'
import { task } from './story.ts'
import { until } from './until.ts'

let ground: Ground
let laptop: ScriptedRunner
let phone: Phone
let sid: string

beforeAll(async () => {
  ground = await Ground.open()
  laptop = await ground.runner({ name: 'laptop', workspaces: [{ path: '/home/ada/shop', name: 'shop' }] })
  phone = await ground.paired()
  await phone.page.getByLabel('Message').fill('Fix the prices')
  await phone.page.getByRole('button', { name: 'New session' }).click()
  sid = await task(laptop, `npm test -- ${'--a-long-option=value '.repeat(60)}&& echo the end`)
  await phone.page.getByRole('button', { name: 'Approve' }).waitFor()
})

afterAll(() => ground.close())

/** Everything that can be tapped and is smaller than a fingertip; links inside of text are excepted (WCAG 2.5.8). */
function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('button, a, select, textarea, input')]
      .filter((element) => element.offsetParent !== null && !element.closest('.prose'))
      .flatMap((element) => {
        const target = element.closest('label') ?? element
        const { width, height } = target.getBoundingClientRect()
        const name = element.getAttribute('aria-label') ?? element.innerText
        return width < 44 || height < 44 ? [`${name}: ${width}×${height}`] : []
      }),
  )
}

describe('a small screen', () => {
  for (const path of ['/', '/runners', '/settings', '/s/']) {
    test(`C16: ${path} fits 320 px without scrolling sideways, and every target takes a thumb`, async () => {
      const { page } = phone
      await page.setViewportSize({ width: 320, height: 740 })
      await page.goto(`${ground.origin}${path === '/s/' ? `/s/${sid}` : path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      if (path === '/s/') await page.getByRole('button', { name: 'Approve' }).waitFor()
      const width = await page.evaluate(() =>
        Math.max(
          ...[...document.querySelectorAll('body, .screen, .scroll')].map((element) => element.scrollWidth),
        ),
      )
      expect(width).toBeLessThanOrEqual(320)
      expect(await smallTargets(page)).toEqual([])
      await page.setViewportSize({ width: 360, height: 740 })
    })
  }

  test('F62, C16: when the keyboard takes half the screen, the composer stays in sight and the head in place', async () => {
    const { page } = phone
    await page.goto(`${ground.origin}/s/${sid}`)
    await page.getByLabel('Message').focus()
    await page.setViewportSize({ width: 360, height: 400 })
    await until('the app has taken the new height', async () => {
      const box = await page.getByLabel('Message').boundingBox()
      return box !== null && box.y + box.height <= 400
    })
    expect((await page.getByRole('heading', { level: 1 }).boundingBox())?.y).toBeGreaterThanOrEqual(0)
    expect((await page.getByRole('heading', { level: 1 }).boundingBox())?.y).toBeLessThan(64)
    expect(await page.evaluate(() => [scrollY, document.documentElement.scrollTop])).toEqual([0, 0])
    await page.setViewportSize({ width: 360, height: 740 })
  })

  test('C11: a command of any length can be read whole, and the buttons stay in sight', async () => {
    const { page } = phone
    const command = page.getByRole('region', { name: 'Command', exact: true })
    expect(await command.innerText()).toMatch(/&& echo the end$/)
    const cut = await command.evaluate((element) => element.scrollWidth > element.clientWidth)
    expect(cut).toBe(false)
    await page.setViewportSize({ width: 360, height: 480 })
    for (const name of ['Deny', 'Approve']) {
      const target = page.getByRole('button', { name, exact: true })
      await target.scrollIntoViewIfNeeded()
      const box = await target.boundingBox()
      expect(box && box.y + box.height).toBeLessThanOrEqual(480)
    }
    await page.setViewportSize({ width: 360, height: 740 })
  })
})

describe('typing', () => {
  test('F63: Enter that ends a composition does not send', async () => {
    const desk = await ground.paired({ touch: false, width: 1200, height: 800 })
    await desk.page.goto(`${ground.origin}/s/${sid}`)
    await desk.page.getByRole('button', { name: 'Approve' }).waitFor()
    const message = desk.page.getByLabel('Message').last()
    await message.fill('日本')
    await message.evaluate((element) => {
      element.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }),
      )
      element.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }),
      )
    })
    expect(await message.inputValue()).toBe('日本')
    await message.press('Enter')
    await desk.page.getByRole('list', { name: 'Queued' }).getByText('日本').waitFor()
    expect(await message.inputValue()).toBe('')
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: '日本' })
  })

  test('F63: Enter on a touch keyboard breaks the line; Ctrl and Enter send', async () => {
    const { page } = phone
    await page.goto(`${ground.origin}/s/${sid}`)
    const message = page.getByLabel('Message')
    await message.fill('one')
    await message.press('Enter')
    expect(await message.inputValue()).toBe('one\n')
    await message.press('Control+Enter')
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: 'one' })
  })
})

describe('a long session', () => {
  test('F64, C17: of twenty thousand entries only what is near is in the page; it follows its end until one scrolls up', async () => {
    const { page } = phone
    const first = laptop.effectsOf(sid)
    const calls = 10_000
    for (let done = 0; done < calls; done += 32) {
      const entries = Array.from({ length: 32 }, (_, i) => {
        const effect = first + 1000 + done + i
        const tool = { name: 'read', input: { path: `src/file-${done + i}.ts` } }
        const digest = 'a'.repeat(64)
        return [
          {
            kind: 'intent' as const,
            body: { effect, kind: 'tool', replay: 'safe', digest, attempt: 1, now: 0, tool },
          },
          {
            kind: 'outcome' as const,
            body: { effect, now: 0, result: { text: 'x', is_error: false }, duration_ms: 1 },
          },
        ]
      }).flat()
      await laptop.appendAll(sid, entries)
    }
    await page.goto(`${ground.origin}/s/${sid}`)
    const last = Math.ceil(calls / 32) * 32 - 1
    await page.getByRole('button', { name: `src/file-${last}.ts` }).waitFor({ timeout: 60_000 })
    expect(await page.locator('.transcript-row').count()).toBeLessThan(120)

    await laptop.say(sid, await laptop.think(sid), 'At the end.')
    await page.getByText('At the end.').waitFor()

    await page.locator('.transcript-list').hover()
    await page.mouse.wheel(0, -3000)
    await page.getByRole('button', { name: 'Latest' }).waitFor()
    const top = await page.locator('.transcript-list').evaluate((element) => element.scrollTop)
    await laptop.say(sid, await laptop.think(sid), 'Further on.')
    await laptop.say(sid, await laptop.think(sid), 'And on.')
    await until('the app knows of it', () =>
      page
        .locator('.transcript-list')
        .evaluate((element, before) => Math.abs(element.scrollTop - before) < 2, top),
    )
    expect(await page.getByText('And on.').count()).toBe(0)
    await page.getByRole('button', { name: 'Latest' }).click()
    await page.getByText('And on.').waitFor()
    // One's own prompt is what one wants to see.
    await page.locator('.transcript-list').hover()
    await page.mouse.wheel(0, -3000)
    await page.getByRole('button', { name: 'Latest' }).waitFor()
    await page.getByLabel('Message').fill('said from above')
    await page.getByRole('button', { name: /^(Send|Queue)$/ }).click()
    await page.getByText('And on.').waitFor()
    await page.getByRole('button', { name: 'Latest' }).waitFor({ state: 'detached' })
    expect(phone.errors).toEqual([])
  })
})

describe('colours', () => {
  const tokens = readFileSync(new URL('../src/styles/tokens.css', import.meta.url), 'utf8')
  const pairs = new Map(
    [...tokens.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
      name,
      [light, dark],
    ]),
  )

  function luminance(hex: string): number {
    const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }

  /** Contrast of WCAG 2.2, in the theme `which` (0 light, 1 dark). */
  function contrast(a: string, b: string, which: number): number {
    const [x, y] = [a, b].map((name) => luminance(pairs.get(name)?.[which] ?? '')).toSorted((l, m) => m - l)
    return ((x ?? 0) + 0.05) / ((y ?? 0) + 0.05)
  }

  const TEXT: [string, string[]][] = [
    ['ink', ['paper', 'surface', 'sunken', 'raised', 'bubble']],
    ['ink-2', ['paper', 'surface', 'sunken']],
    ['accent', ['paper', 'surface', 'sunken', 'accent-wash']],
    ['on-accent', ['accent-fill']],
    ['removed', ['paper', 'surface', 'sunken', 'removed-wash']],
    ['added', ['added-wash']],
  ]

  test('C16: text has a contrast of 4.5, borders of controls of 3, in both themes', () => {
    for (const which of [0, 1]) {
      for (const [text, grounds] of TEXT) {
        for (const on of grounds) {
          expect(contrast(text, on, which), `${text} on ${on}, theme ${which}`).toBeGreaterThanOrEqual(4.5)
        }
      }
      for (const on of ['paper', 'surface', 'raised']) {
        expect(
          contrast('line-strong', on, which),
          `line-strong on ${on}, theme ${which}`,
        ).toBeGreaterThanOrEqual(3)
      }
    }
  })
})
