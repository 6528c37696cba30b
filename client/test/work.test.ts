/** What issue work needs from the pocket: steering, photos, notes, settings, retries, coming home. */
import { join } from 'node:path'
import type { PromptCommand } from '@baton/shared/journal.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import { SETTINGS_SCHEMA, TODOS } from './story.ts'
import {
  begin,
  button,
  dialog,
  fits,
  ground,
  laptop,
  message,
  page,
  phone,
  queued,
  radio,
  sid,
} from './turn.ts'
import { until } from './until.ts'

const PICTURES = join(import.meta.dirname, '../public')

describe('prompts', () => {
  test('C15: while the agent works a prompt queues, or steers when that is chosen for it; Stop stays in reach', async () => {
    await begin()
    await message().fill('after that')
    await page.getByText('Waits for the end of the turn').waitFor()
    await button('Queue').click()
    await queued().getByText('Waits for the end of the turn').waitFor()
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: 'after that' })
    await message().fill('no, this way')
    await radio('Steer').check()
    await fits()
    // What one types has the width of the screen, not what the buttons leave.
    expect(await message().evaluate(({ clientWidth }) => clientWidth / innerWidth)).toBeGreaterThan(0.9)
    await button('Steer').click()
    await queued().getByText('Reaches the agent at its next step').waitFor()
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: 'no, this way', steer: true })
    await message().fill('again')
    // Steering is for one prompt.
    expect(await radio('Queue').isChecked()).toBe(true)
    await fits()
    await button('Stop').click()
    expect(await laptop.receive(sid, 'stop')).toEqual({})
    expect(await message().inputValue()).toBe('again')
    await message().fill('')
  })

  test('F63: Enter that an input method takes sends nothing', async () => {
    await begin()
    await message().fill('日本')
    await message().evaluate((area) => {
      const enter = { key: 'Enter', bubbles: true, cancelable: true }
      area.dispatchEvent(new KeyboardEvent('keydown', { ...enter, ctrlKey: true, isComposing: true }))
      area.dispatchEvent(new KeyboardEvent('keydown', { ...enter, ctrlKey: true, keyCode: 229 }))
    })
    expect(await message().inputValue()).toBe('日本')
    expect(await queued().count()).toBe(0)
    await message().press('Control+Enter')
    expect(await laptop.receive(sid, 'prompt')).toMatchObject({ text: '日本' })
  })

  test('C22: photos go with a prompt: kept over a reload and a break, stored sealed, shown in the transcript', async () => {
    await begin()
    await page
      .getByLabel('Photos to attach')
      .setInputFiles([join(PICTURES, 'icon-512.png'), join(PICTURES, 'icon-192.png')])
    await button('Remove photo 2').click()
    await button('Remove photo 2').waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('img', { name: 'Photo 1' }).waitFor()
    // The list has come again: without it the page does not know that the agent works.
    await button('Queue').waitFor()
    await ground.relayAway()
    await button('Queue').click()
    await queued().getByText('1 photo').waitFor()
    await page.reload()
    await queued().getByText('1 photo').waitFor()
    await ground.relayBack()
    const { text, images = [] } = (await laptop.receive(sid, 'prompt')) as PromptCommand
    expect(text).toBe('')
    expect(images.map(({ media_type }) => media_type)).toEqual(['image/png'])
    const bytes = await laptop.blob(sid, images[0]?.blob ?? '')
    expect(String.fromCharCode(...bytes.subarray(1, 4))).toBe('PNG')
    await page.getByRole('img', { name: 'Photo', exact: true }).waitFor()
    await queued().waitFor({ state: 'detached' })
  })

  test('C22: a large photo is scaled and becomes a JPEG', async () => {
    await begin()
    const large = await page.evaluate(async () => {
      const canvas = new OffscreenCanvas(3200, 1600)
      canvas.getContext('2d')?.fillRect(10, 10, 3000, 900)
      const blob = await canvas.convertToBlob({ type: 'image/png' })
      return [...new Uint8Array(await blob.arrayBuffer())]
    })
    const file = { name: 'large.png', mimeType: 'image/png', buffer: Buffer.from(large) }
    await page.getByLabel('Photos to attach').setInputFiles(file)
    await message().fill('This one')
    await button('Queue').click()
    const { images = [] } = (await laptop.receive(sid, 'prompt')) as PromptCommand
    expect(images.map(({ media_type }) => media_type)).toEqual(['image/jpeg'])
    const size = await page.evaluate(
      async (bytes) => {
        const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)]))
        return [bitmap.width, bitmap.height]
      },
      [...(await laptop.blob(sid, images[0]?.blob ?? ''))],
    )
    expect(size).toEqual([1568, 784])
  })

  test('F66: a HEIC photo that the browser can’t read is refused in words, and the others go', async () => {
    await begin()
    const heic = Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1')
    await page.getByLabel('Photos to attach').setInputFiles([
      { name: 'IMG_7.HEIC', mimeType: 'image/heic', buffer: heic },
      { name: 'plain.png', mimeType: 'image/png', buffer: await icon() },
    ])
    await page.getByText('IMG_7.HEIC is a HEIC photo, which this browser can’t read').waitFor()
    await button('Remove photo 1').waitFor()
    expect(await button('Remove photo 2').count()).toBe(0)
    await button('Remove photo 1').click()
  })
})

async function icon(): Promise<Buffer> {
  const { readFile } = await import('node:fs/promises')
  return await readFile(join(PICTURES, 'icon-192.png'))
}

describe('while it works', () => {
  test('C23: the newest lines of a running call show under it, and go with its outcome', async () => {
    await begin()
    const run = await laptop.call(sid, 'bash', { command: 'npm test' })
    laptop.stream(sid, run, Array.from({ length: 40 }, (_, i) => `line ${i}`).join('\n'))
    const output = page.getByRole('region', { name: 'Output so far' })
    await output.getByText('line 39').waitFor()
    expect((await output.innerText()).split('\n')).toHaveLength(5)
    await laptop.did(sid, run, 'done')
    await output.waitFor({ state: 'detached' })
  })

  test('C28: what the model said while it thought is one line that opens, and nothing else of it shows', async () => {
    await begin()
    const thought = `**First** I look at \`prices.ts\`, ${'since the totals come from there, '.repeat(6)}then I mend it.`
    await laptop.say(sid, await laptop.think(sid), 'I begin.', thought)
    await page.getByText('I begin.').waitFor()
    const line = button(/^Thought: First I look at prices.ts/)
    await line.waitFor()
    expect(await page.getByText('then I mend it.').count()).toBe(1)
    await fits()
    await line.click()
    await page.locator('.thought').getByText('then I mend it.').waitFor()
    await fits()
    expect(await page.content()).not.toMatch(/cmVkYWN0ZWQ|c2lnbmF0dXJl/)
  })

  test('C2, C28: what the model thinks just now shows quietly, two lines of it, until it says something', async () => {
    await begin()
    const effect = await laptop.think(sid)
    const now = page.locator('.live-thought')
    laptop.stream(sid, effect, '', 'The totals come from prices.ts.')
    await now.getByText('The totals come from prices.ts.').waitFor()
    const one = (await now.boundingBox())?.height ?? 0
    const long = `${'So it may be the rounding, or the order of the lines. '.repeat(8)}I look at both.`
    laptop.stream(sid, effect, '', long)
    await now.getByText('I look at both.').waitFor()
    const { height = 0, y = 0 } = (await now.boundingBox()) ?? {}
    expect(height / one).toBeCloseTo(2)
    // Its end is what is seen.
    const text = (await now.locator('p').boundingBox()) ?? { y: 0, height: 0 }
    expect(text.y + text.height).toBeCloseTo(y + height, 0)
    await fits()
    laptop.stream(sid, effect, 'It is the rounding.', '')
    await page.getByText('It is the rounding.').waitFor()
    expect(await now.count()).toBe(0)
    await laptop.say(sid, effect, 'It is the rounding. I mend it.', long)
    await button(/^Thought: So it may be/).waitFor()
    expect(await page.getByText('Thinking', { exact: true }).count()).toBe(0)
  })

  test('F27, C26: a busy model is told with the attempt; after the last one a tap goes on', async () => {
    await begin()
    const effect = await laptop.think(sid)
    await laptop.retry(sid, effect, 3, 'model-busy', 600_000)
    await page.getByText(/attempt 3 of 5, in \d+ s/).waitFor()
    await laptop.fail(sid, effect, 'model-busy')
    await laptop.emit(sid, 'error', { code: 'model-busy', message: 'The model is busy.' })
    await laptop.rest(sid)
    await page.getByText('Wait a moment, then try again').waitFor()
    await button('Try again').click()
    expect(await laptop.receive(sid, 'prompt')).toEqual({ text: 'Continue.' })
    await button('Try again').waitFor({ state: 'detached' })
  })
})

describe('notes', () => {
  beforeEach(() => begin())

  const todo = (version: number, more: object = {}): Promise<void> =>
    laptop.emit(sid, 'document', { name: 'todo', version, value: TODOS, ...more })

  test('C24: a to-do list is a checklist, and its state a line above the composer', async () => {
    await todo(1)
    await button('To do: 1 of 3 · Test totals above 100').click()
    await page.getByRole('checkbox', { name: 'Run the whole suite' }).check()
    await page.getByLabel('New entry').fill('Tell Ada')
    await button('Add').click()
    await fits()
    await button('Save').click()
    const change = (await laptop.receive(sid, 'document')) as { version: number; value: unknown }
    expect(change).toMatchObject({ name: 'todo', version: 1 })
    expect(change.value).toEqual([
      ...TODOS.slice(0, 2),
      { text: 'Run the whole suite', state: 'done' },
      { text: 'Tell Ada', state: 'open' },
    ])
  })

  test('C24: any other is a form by its schema; what has no schema is shown as JSON', async () => {
    const value = { title: 'Totals', rounds: 2, files: ['a.ts'], level: 'high' }
    await laptop.emit(sid, 'document', { name: 'settings', version: 4, value, schema: SETTINGS_SCHEMA })
    await laptop.emit(sid, 'document', { name: 'facts', version: 1, value: { deep: { er: [1, 2] } } })
    const owned = { type: 'string', title: 'Plan', readOnly: true }
    const plan = { type: 'object', properties: { text: owned }, required: ['text'] }
    await laptop.emit(sid, 'document', {
      name: 'plan',
      version: 1,
      value: { text: '1. *Sum* first.' },
      schema: plan,
    })
    await button('Session menu').click()
    await button(/^Notes/).click()
    await page.getByText('"deep"').waitFor()
    await page.getByRole('group', { name: 'Plan' }).getByText('Sum first.').waitFor()
    expect(await page.getByRole('textbox', { name: 'Plan' }).count()).toBe(0)
    // No keyboard comes up before anybody types.
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('H2')
    await page.getByRole('textbox', { name: 'Rounds' }).fill('x')
    await page.getByText('Rounds must be a number.').waitFor()
    expect(await button('Save').isDisabled()).toBe(true)
    await page.getByRole('textbox', { name: 'Rounds' }).fill('3')
    await page.getByRole('checkbox', { name: 'Strict' }).check()
    await page.getByLabel('Level').selectOption('low')
    await button('Add', true).click()
    await page.getByRole('textbox', { name: 'Files, entry 2' }).fill('b.ts')
    await fits()
    await button('Save').click()
    expect(await laptop.receive(sid, 'document')).toEqual({
      name: 'settings',
      version: 4,
      value: { title: 'Totals', rounds: 3, strict: true, level: 'low', files: ['a.ts', 'b.ts'] },
    })
  })

  test('I11, C25: a conflict is told, and what was typed is kept, over a reload as well', async () => {
    await todo(1)
    await button(/^To do: /).click()
    await page.getByRole('checkbox', { name: 'Run the whole suite' }).check()
    await todo(2)
    await page.getByText('It was changed meanwhile').waitFor()
    await page.reload()
    await button(/^To do: /).click()
    await page.getByText('It was changed meanwhile').waitFor()
    expect(await page.getByRole('checkbox', { name: 'Run the whole suite' }).isChecked()).toBe(true)
    await button('Save over it').click()
    await page.getByText('Sent. The agent takes it').waitFor()
    const id = (await until('it is there', () => laptop.held.get(sid)?.inbox[0]))?.id ?? ''
    expect(await laptop.receive(sid, 'document')).toMatchObject({ version: 2 })
    await todo(2, { command: id, refused: 'The list is being changed.' })
    await page.getByText('Not taken: The list is being changed.').waitFor()
    expect(await page.getByRole('checkbox', { name: 'Run the whole suite' }).isChecked()).toBe(true)
    await button('Save').click()
    const again = (await until('it is there', () => laptop.held.get(sid)?.inbox[0]))?.id ?? ''
    await laptop.receive(sid, 'document')
    await todo(3, { command: again })
    await page.getByText('Sent. The agent takes it').waitFor({ state: 'detached' })
    expect(await page.getByRole('checkbox', { name: 'Run the whole suite' }).isChecked()).toBe(false)
    expect(await button('Save').count()).toBe(0)
  })
})

describe('the session’s menu', () => {
  test('chooses model and effort, compacts, and says what was used', async () => {
    await begin()
    await laptop.emit(sid, 'turn', {
      turn: 1,
      state: 'end',
      usage: { input_tokens: 10, output_tokens: 20, cache_read_tokens: 0, cache_write_tokens: 0 },
      cost_usd: 0.5,
    })
    await button('Session menu').click()
    await dialog().getByText('10 in · 20 out · $0.50').first().waitFor()
    await fits()
    await page.getByRole('combobox', { name: 'Model' }).selectOption('claude-sonnet-4-5')
    expect(await laptop.receive(sid, 'settings')).toEqual({ settings: { model: 'claude-sonnet-4-5' } })
    await page.getByRole('combobox', { name: 'Effort' }).selectOption('high')
    expect(await laptop.receive(sid, 'settings')).toEqual({ settings: { effort: 'high' } })
    await button('Compact now').click()
    await laptop.receive(sid, 'compact')
    await laptop.emit(sid, 'compacted', { before: 152_000, after: 9100 })
    await page.getByRole('separator', { name: 'compacted · 152k → 9.1k tokens' }).waitFor()
  })
})

describe('coming home', () => {
  test('C27: a runner that is back offers what went on elsewhere, and a tap moves it', async () => {
    await begin('Travel')
    const cloud = await ground.runner({ name: 'cloud-9' })
    const effects = laptop.effectsOf(sid)
    await laptop.release(sid, 'moving', { prefer: cloud.device.id })
    await cloud.take(sid)
    cloud.held.get(sid)!.effects = effects
    await cloud.say(sid, await cloud.think(sid), 'Here now.')
    await cloud.rest(sid)
    await laptop.tellAway([sid])
    await page.goto(ground.origin)
    await page.getByText('laptop is back. One of its sessions went on elsewhere.').waitFor()
    await fits()
    await button('Bring home').click()
    await page.getByText('laptop is back').waitFor({ state: 'detached' })
    expect(await cloud.receive(sid, 'move')).toEqual({ label: 'laptop' })
  })
})

test('nothing on the way broke the content security policy or threw', () => {
  expect(phone.errors).toEqual([])
})
