/**
 * `npm run screenshots`: walks through the real product as a person would, on a phone-sized browser, and saves what it sees to
 * docs/screenshots, in light and dark.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openBrowser, openPhone } from './browser.ts'
import { Ground, signal } from './processes.ts'
import { makeRepo } from './repo.ts'
import { SHOWCASE } from './showcase.ts'

const FOLDER = join(import.meta.dirname, '../../docs/screenshots')

async function walk(ground: Ground, theme: 'light' | 'dark'): Promise<void> {
  const repo = join(await ground.newFolder(theme), 'lap-timer')
  await mkdir(repo)
  makeRepo(repo, { extra: SHOWCASE })
  const model = await ground.model('showcase')
  const up = await ground.up({ workspace: repo, model, args: ['--name', 'laptop'] })
  const [link = ''] = await up.process.waitForOutput(/http:\S+#pair=\S+/)
  const pair = await ground.baton(['pair', '--json', '--data', up.data])
  const [, second = ''] = await pair.waitForOutput(/"link":"([^"]+)"/)
  const cloud = await ground.runner({
    ...{ name: 'cloud-2', model },
    args: ['--join', second, '--pool', 'cloud', '--workspace', repo],
  })
  await cloud.process.waitForOutput(/serving/)

  const browser = await openBrowser(ground.environment())
  const { page } = await openPhone(browser, { theme })
  const shoot = async (name: string): Promise<void> => {
    // Sheets and bars slide in; a picture of them half-way shows nothing.
    // The pulse of what runs never ends.
    await page.evaluate(() => {
      const ends = document.getAnimations().filter(({ effect }) => effect?.getTiming().iterations === 1)
      return Promise.all(ends.map(({ finished }) => finished.catch(() => undefined)))
    })
    await page.screenshot({ path: join(FOLDER, `${name}-${theme}.png`) })
  }

  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })

  await page.goto(up.url)
  await page.getByRole('textbox').first().waitFor()
  await shoot('pairing')
  await page.goto(link)
  await page.getByRole('textbox', { name: 'Message' }).waitFor()

  await begin(page, 'Add a JSON export to the lap report.')
  await button('Deny').click()
  await page
    .getByRole('link', { name: /Sessions|Back/ })
    .first()
    .click()
  await begin(page, 'The lap counter is off by one after a restart. Find out why and mend it.')
  await button('Approve').waitFor()
  await shoot('approval')
  await button(/laptop/).click()
  await page.getByRole('dialog').getByText('cloud-2').click()
  await shoot('move')
  await button('Move').click()
  await page.getByText(/moved to cloud-2/).waitFor()
  await button('Approve').click()
  await page.getByText('npm test').first().waitFor()
  await button('Always for this session…').click()
  await shoot('always')
  await button('Always allow').click()
  await page.getByText('Ran', { exact: true }).waitFor()
  await page.getByText('Thinking').waitFor()
  await button(/^Mode: /).click()
  await page.getByRole('radio', { name: 'Edit files' }).check()
  await shoot('modes')
  await button('Choose').click()
  await button('Mode: Edit files').waitFor()
  await page.getByRole('textbox', { name: 'Message' }).fill('Also write it into the changelog.')
  await page.getByRole('radio', { name: 'Steer' }).check()
  await shoot('steer')
  await button('Steer').click()
  await page.getByRole('list', { name: 'Queued' }).waitFor()
  await button('Session menu').click()
  await button(/^Notes/).click()
  await page.getByRole('region', { name: 'todo' }).waitFor()
  await shoot('notes')
  await button('Close').click()
  await model.open('steer')
  await page.getByText('The counter is right after a restart now').waitFor()
  await shoot('session')
  await page
    .getByRole('link', { name: /Sessions|Back/ })
    .first()
    .click()
  await page.getByText('The lap counter is off by one').first().waitFor()
  await shoot('sessions')
  await page.getByRole('link', { name: 'Runners' }).click()
  await page.getByText('cloud-2').first().waitFor()
  await shoot('runners')
  await page.getByRole('link', { name: 'Sessions' }).click()
  await page.getByText('The lap counter is off by one').first().click()
  await page.getByText('The counter is right after a restart now').waitFor()
  for (const pid of ground.find(/relay\/src\/cli/)) signal(pid, 'SIGSTOP')
  await page.getByRole('textbox', { name: 'Message' }).fill('Look for the same mistake in the split times.')
  await page.getByRole('button', { name: /Send|Queue/ }).click()
  await page.context().setOffline(true)
  await page
    .getByText(/no connection|offline|not connected/i)
    .first()
    .waitFor()
  await shoot('offline')
  await browser.close()
}

async function begin(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByLabel('Runner', { exact: true }).selectOption({ label: 'laptop' })
  await page.getByRole('button', { name: 'New session' }).click()
  await page.waitForURL(/\/s\//)
}

await mkdir(FOLDER, { recursive: true })
for (const theme of ['light', 'dark'] as const) {
  await using ground = await Ground.open()
  await walk(ground, theme)
}
