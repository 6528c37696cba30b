/** Takes pictures of the screens, light and dark: `node tools/shots.ts FOLDER`. Needs `vite build` before. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { Ground } from '../test/ground.ts'
import { moved, task } from '../test/story.ts'

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
    const fresh = await ground.phone({ theme })
    await fresh.page.goto(ground.origin)
    await fresh.page.getByLabel('Pairing link').waitFor()
    await shot(fresh.page, 'pair')

    const { page } = await ground.paired({ theme })
    await page.getByText('Nothing here yet').waitFor()
    await shot(page, 'empty')

    const laptop = await ground.runner({
      name: 'laptop',
      workspaces: [
        { path: '/home/ada/shop', name: 'shop', branch: 'main' },
        { path: '/home/ada/site', name: 'site' },
      ],
    })
    const cloud = await ground.runner({ name: 'cloud-2', pools: ['cloud'], workspaces: [] })
    await page
      .getByLabel('Message')
      .fill('Prices round wrongly for totals above 100. Find out why and fix it.')
    await page.getByRole('button', { name: 'New session' }).click()
    const sid = await task(laptop)
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    await shot(page, 'approval')

    await page.getByRole('button', { name: 'Runner: laptop' }).click()
    await page.getByRole('radio', { name: 'cloud-2' }).waitFor()
    await shot(page, 'move')
    await page.getByRole('button', { name: 'Move' }).click()
    await moved(laptop, cloud, sid)
    await page.getByRole('button', { name: 'Runner: cloud-2' }).waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    const decision = await cloud.receive(sid, 'decision')
    const { effect, device } = decision as { effect: number; device: string }
    await cloud.decided(sid, effect, true, device)
    const run = await cloud.call(sid, 'bash', { command: 'npm test -- --run prices' }, effect)
    await cloud.did(
      sid,
      run,
      'PASS  test/prices.test.ts (14)\n\n Tests  14 passed (14)\n Time   1.9 s',
      { exit_code: 0 },
      1900,
    )
    const answer = await cloud.think(sid)
    cloud.stream(sid, answer, 'All 14 tests pass now. The cause was')
    await page.getByText('The cause was').waitFor()
    await page.getByLabel('Message').fill('Then add a line to the change log')
    await shot(page, 'session')
    await page.getByRole('button', { name: 'Queue' }).click()
    await page.getByRole('list', { name: 'Queued' }).getByText('Waits for the end of the turn').waitFor()
    await cloud.say(
      sid,
      answer,
      'All 14 tests pass now. The cause was **one rounding too many**:\n\n' +
        '| step | before | after |\n|---|---|---|\n| line total | rounded | exact |\n| sum | rounded | rounded |\n\n' +
        '```ts\nexport const total = (lines: Line[]): number =>\n  round(lines.reduce((sum, line) => sum + line.price * line.count, 0), 2)\n```\n',
    )
    await page.getByText('one rounding too many').waitFor()
    await page.getByRole('button', { name: /edited/i }).click()
    await shot(page, 'answer')

    // Other sessions, so that the inbox has all of its parts.
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByLabel('Message').fill('Upgrade the payment library and run the whole suite')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByRole('button', { name: /^Runner/ }).waitFor()
    const second = await laptop.take()
    await laptop.receive(second, 'start')
    await laptop.receive(second, 'prompt')
    await laptop.ask(second, 'bash', { command: 'npm install payments@4 && npm test' })
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByLabel('Message').fill('Write the release notes for 2.1')
    await page.getByRole('button', { name: 'New session' }).click()
    const third = await laptop.take()
    await laptop.receive(third, 'start')
    await laptop.receive(third, 'prompt')
    await laptop.rest(third)
    await laptop.release(third, 'idle')
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByText('npm install payments@4').waitFor()
    await shot(page, 'sessions')

    await page.getByRole('link', { name: 'Runners' }).click()
    await page.getByRole('heading', { name: 'cloud-2' }).waitFor()
    await shot(page, 'runners')
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByText('this device').waitFor()
    await shot(page, 'settings')
    await page.getByRole('button', { name: 'Pair another device' }).click()
    await page.getByRole('button', { name: 'Show link' }).click()
    await page.getByRole('img', { name: /QR/ }).waitFor()
    await shot(page, 'pair-another')
    await page.getByRole('button', { name: 'Done' }).click()

    await page.goto(`${ground.origin}/s/${sid}`)
    await page.getByText('one rounding too many').waitFor()
    await ground.relayAway()
    await page.getByText('No connection to the relay').waitFor()
    await page.getByLabel('Message').fill('And tell me what it costs')
    await page.getByRole('button', { name: 'Queue' }).click()
    await page.getByText('Kept here; sent').waitFor()
    await shot(page, 'offline')
    await ground.relayBack()

    const desk = await ground.paired({ theme, width: 1200, height: 800, touch: false })
    await desk.page.goto(`${ground.origin}/s/${sid}`)
    await desk.page.getByText('one rounding too many').waitFor()
    await shot(desk.page, 'desktop')
  } finally {
    await ground.close()
  }
}
