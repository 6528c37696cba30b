/** Takes pictures of what a session offers beside its transcript: `node tools/shots-work.ts FOLDER`. Needs `vite build` before. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { Ground } from '../test/ground.ts'
import { PLAN, SETTINGS_SCHEMA, TODOS } from '../test/story.ts'

const folder = process.argv[2] ?? '/tmp/shots'
await mkdir(folder, { recursive: true })

for (const theme of ['light', 'dark'] as const) {
  const ground = await Ground.open()
  const shot = async (page: Page, name: string): Promise<void> => {
    // Every animation is through and every font is there.
    await page.evaluate(async () => {
      const ends = document.getAnimations().filter(({ effect }) => effect?.getTiming().iterations === 1)
      await Promise.all(ends.map(({ finished }) => finished))
    })
    await page.screenshot({ path: join(folder, `${name}-${theme}.png`) })
  }
  try {
    const { page } = await ground.paired({ theme })
    const button = (name: string | RegExp) => page.getByRole('button', { name })
    const laptop = await ground.runner({
      name: 'laptop',
      workspaces: [{ path: '/home/ada/shop', name: 'shop' }],
      models: ['claude-opus-4-5', 'claude-sonnet-4-5'],
    })
    await page.getByLabel('Message').fill('Make the totals right, and tidy up')
    await button(/^Mode/).click()
    await page.getByRole('radio', { name: 'Plan' }).check()
    await shot(page, 'mode')
    await button('Choose').click()
    await shot(page, 'new')
    await button('New session').click()
    const sid = await laptop.take()
    await laptop.receive(sid, 'start')
    await laptop.receive(sid, 'prompt')
    await laptop.emit(sid, 'turn', { turn: 1, state: 'start' })
    await laptop.say(sid, await laptop.think(sid), 'I have looked around. Here is what I would do.')
    const plan = await laptop.ask(sid, 'propose_plan', { plan: PLAN })
    await button('Approve').waitFor()
    await page.getByRole('radio', { name: 'Edit files' }).check()
    await shot(page, 'plan')
    await button('Approve').click()
    await laptop.receive(sid, 'mode')
    const { device } = (await laptop.receive(sid, 'decision')) as { device: string }
    await laptop.decided(sid, plan, true, device)
    await laptop.emit(sid, 'document', { name: 'todo', version: 1, value: TODOS })
    const run = await laptop.call(sid, 'bash', { command: 'npm test' })
    laptop.stream(
      sid,
      run,
      'PASS test/a.test.ts\nPASS test/b.test.ts\nPASS test/cart.test.ts\nRUNS test/prices.test.ts',
    )
    await page.getByText('RUNS test/prices').waitFor()
    await page
      .getByLabel('Photos to attach')
      .setInputFiles([
        join(import.meta.dirname, '../public/icon-maskable-512.png'),
        join(import.meta.dirname, '../public/icon-512.png'),
      ])
    await button('Remove photo 2').waitFor()
    await page.getByLabel('Message').fill('It should look like this in the end')
    await page.getByRole('radio', { name: 'Steer' }).check()
    await shot(page, 'steer')
    await button('Steer').click()
    await page.getByRole('list', { name: 'Queued' }).waitFor()
    await shot(page, 'steered')
    await laptop.receive(sid, 'prompt')
    await laptop.did(sid, run, 'ok', { exit_code: 0 }, 4100)
    await page.getByRole('img', { name: 'Photo 2' }).waitFor()
    const push = await laptop.ask(sid, 'bash', { command: 'git push origin fix/totals' })
    await button('Always for this session…').click()
    await shot(page, 'always')
    await button('Always allow').click()
    await laptop.receive(sid, 'decision')
    await laptop.decided(sid, push, true, device)
    await laptop.did(
      sid,
      await laptop.call(sid, 'bash', { command: 'git push origin fix/totals' }, push),
      'ok',
    )
    await laptop.ask(sid, 'bash', { command: 'npm test | tee log && rm log' })
    await page.getByText('No “always”').waitFor()
    await shot(page, 'never-always')
    await button(/^Deny$/).click()
    await laptop.receive(sid, 'decision')
    await laptop.decided(sid, push + 2, false, device)
    await laptop.emit(sid, 'document', {
      name: 'settings',
      version: 3,
      value: { title: 'Totals', rounds: 2, strict: true, level: 'high', files: ['src/prices.ts'] },
      schema: SETTINGS_SCHEMA,
    })
    await button('Session menu').click()
    await button(/^Notes/).click()
    await page.getByRole('textbox', { name: 'Title' }).fill('Totals and taxes')
    await shot(page, 'notes')
    await page.getByRole('dialog').evaluate((dialog) => dialog.scrollTo(0, 10_000))
    await shot(page, 'notes-end')
    await button('Close').click()
    await laptop.emit(sid, 'compacted', { before: 152_000, after: 9100 })
    const effect = await laptop.think(sid)
    await laptop.retry(sid, effect, 3, 'model-busy', 8_000)
    await page.getByText(/attempt 3 of 5/).waitFor()
    await shot(page, 'retry')
    await laptop.fail(sid, effect, 'model-busy')
    await laptop.emit(sid, 'error', {
      code: 'model-busy',
      message: 'The model service has no room for the request now.',
    })
    await laptop.emit(sid, 'turn', {
      turn: 1,
      state: 'end',
      reason: 'error',
      usage: { input_tokens: 1200, output_tokens: 2300, cache_read_tokens: 98_000, cache_write_tokens: 4000 },
      cost_usd: 0.084,
    })
    await laptop.rest(sid)
    await button('Try again').waitFor()
    await shot(page, 'again')
    await button('Session menu').click()
    await page.getByText('In all').waitFor()
    await shot(page, 'menu')
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
    await button(/^Mode/).click()
    await page.getByRole('radio', { name: 'Full access' }).check()
    await button('Choose').click()
    await shot(page, 'full')
    await button('Give full access').click()
    await laptop.receive(sid, 'mode')
    await laptop.rest(sid)
    await page.getByText('Mode: full').waitFor()
    await shot(page, 'full-chip')
  } finally {
    await ground.close()
  }
}
