/** The whole path, as a person walks it: one command, a link, a phone. */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { transcriptOf, type TranscriptItem } from '@baton/shared/transcript.ts'
import { loadIdentity } from '@baton/runner/daemon/identity.ts'
import { openBrowser, openPhone, type Phone } from '../src/browser.ts'
import { TestClient } from '../src/client.ts'
import { Ground, type Model, type Relay } from '../src/processes.ts'
import { makeRepo, treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

const COMMAND = 'wc -l README.md > lines.txt && cat lines.txt'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

interface Stage {
  ground: Ground
  model: Model
  up: Relay
  repo: string
  phone: Phone
  /** Data folder of the second runner. */
  second: string
}

/** `baton up`, a second runner by a pairing link, and a phone by the link that `up` printed. */
async function setStage(ground: Ground): Promise<Stage> {
  const repo = await ground.newFolder('repo')
  makeRepo(repo)
  const model = await ground.model('task')
  const up = await ground.up({ workspace: repo, model, args: ['--name', 'laptop'] })
  const [link = ''] = await up.process.waitForOutput(/http:\S+#pair=\S+/)
  const pair = await ground.baton(['pair', '--json', '--data', up.data])
  const [, second = ''] = await pair.waitForOutput(/"link":"([^"]+)"/)
  const runner = await ground.runner({
    ...{ name: 'cloud-2', model },
    args: ['--join', second, '--pool', 'cloud', '--workspace', repo],
  })
  await runner.process.waitForOutput(/serving/)
  const phone = await openPhone(browser)
  await phone.page.goto(link)
  return { ground, model, up, repo, phone, second: runner.data }
}

async function startSession(page: Page, text: string): Promise<string> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByLabel('Runner', { exact: true }).selectOption({ label: 'laptop' })
  await page.getByRole('button', { name: 'New session' }).click()
  await page.waitForURL(/\/s\//)
  return page.url().split('/s/')[1] ?? ''
}

interface Played {
  transcript: TranscriptItem[]
  tree: Record<string, string>
  requests: number
}

async function play(move: boolean): Promise<Played> {
  await using ground = await Ground.open()
  const { model, up, phone, second } = await setStage(ground)
  const { page } = phone
  const sid = await startSession(page, 'Count the lines of the README.')
  await page.getByText('I look at the files first.').waitFor()
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  // The whole command, never cut.
  await page.getByText(COMMAND).first().waitFor()
  const asked = (await model.state()).count
  if (move) {
    await page.getByRole('button', { name: /laptop/ }).click()
    await page.getByRole('dialog').getByText('cloud-2').click()
    await page.getByRole('button', { name: 'Move', exact: true }).click()
    await page.getByRole('button', { name: /cloud-2/ }).waitFor()
    await page.getByText(/moved to cloud-2/).waitFor()
    expect((await model.state()).count, 'model requests during the move').toBe(asked)
  }
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('The README was counted; the number stands in').waitFor()
  await page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' })
  expect(phone.errors).toEqual([])

  const identity = await loadIdentity(up.data)
  if (!identity) throw new Error('no identity')
  await using client = await TestClient.open(up.url, identity.account)
  const entries = await client.untilEntries(sid, 'the agent waits for a prompt', (all) =>
    all.some(
      (entry, i) =>
        i > 10 && entry.kind === 'intent' && entry.body.kind === 'prompt' && entry.body.effect > 1,
    ),
  )
  const holder = await until('the session is somewhere', () => (move ? second : up.data))
  const tree = treeOf(join(holder, 'worktrees', sid))
  await phone.context.close()
  return { transcript: transcriptOf(entries), tree, requests: (await model.state()).count }
}

describe('first light', () => {
  it('I8: pair, prompt, approve, move while the approval is pending: it goes on there, as if it had never moved (I7)', async () => {
    const moved = await play(true)
    const unmoved = await play(false)
    expect(moved.transcript).toEqual(unmoved.transcript)
    expect(moved.tree).toEqual(unmoved.tree)
    expect(Object.keys(moved.tree)).toContain('lines.txt')
    expect(moved.requests).toBe(unmoved.requests)
  })
})
