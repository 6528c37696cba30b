/** What a person decides from the pocket: modes, approvals, plans. */
import { verifyDecision, verifyMode } from '@baton/shared/keys.ts'
import type { DecisionCommand, ModeCommand } from '@baton/shared/journal.ts'
import { describe, expect, test } from 'vitest'
import { PLAN } from './story.ts'
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
  radio,
  sid,
  taken,
} from './turn.ts'
import { until } from './until.ts'

describe('modes', () => {
  test('C19, F38: are chosen with what each means; full access asks once more, before a session begins', async () => {
    await page.goto(ground.origin)
    await message().fill('Begin')
    const chosen = page.locator('.pick')
    await chosen.nth(2).waitFor()
    const side = await page.locator('.composer-side').boundingBox()
    for (const box of await Promise.all((await chosen.all()).map((pick) => pick.boundingBox())))
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual((side?.x ?? 0) + (side?.width ?? 0))
    await button(/^Mode: /).click()
    await page.getByText('Looks, and makes a plan.').waitFor()
    await fits()
    await radio('Full access').check()
    await button('Choose').click()
    await dialog().getByText('runs and every file changes without asking').waitFor()
    await button('Back').click()
    await button('Cancel').click()
    await button('Mode: Ask first').click()
    await radio('Edit files').check()
    await button('Choose').click()
    await button('Mode: Edit files').waitFor()
    await button('Start new session').click()
    await taken()
    expect(await laptop.receive(sid, 'start')).toMatchObject({ mode: 'edit' })
    await laptop.receive(sid, 'prompt')
    await button('Mode: Edit files').waitFor()
  })

  test('C19, F38: a change is signed, counted from what was changed before, and shown as on its way until it counts', async () => {
    await begin()
    for (const [revision, name, mode] of [
      [0, 'Plan', 'plan'],
      [1, 'Full access', 'full'],
    ] as const) {
      await button(/^Mode: /).click()
      await radio(name).check()
      await button('Choose').click()
      if (mode === 'full') await button('Give full access').click()
      await button(`Mode: ${name}, being changed`).waitFor()
      const body = (await laptop.receive(sid, 'mode')) as ModeCommand
      expect(body).toMatchObject({ mode, revision })
      expect(verifyMode(body.device, { sid, revision, mode }, body.signature)).toBe(true)
      await button(`Mode: ${name}`, true).waitFor()
    }
    await fits()
  })
})

describe('approvals', () => {
  test('C20, I10: “always” is one step away, says what it would allow, and goes signed with the decision', async () => {
    await begin()
    const effect = await laptop.ask(sid, 'bash', { command: 'npm test -- --run prices' })
    await button('Always for this session…').click()
    await page.getByText('on every machine, every npm test … runs without asking').waitFor()
    await fits()
    await button('Back').click()
    await button('Always for this session…').click()
    await button('Always allow').click()
    const body = (await laptop.receive(sid, 'decision')) as DecisionCommand
    const always = { tool: 'bash', prefix: 'npm test', action: 'allow' as const }
    expect(body).toMatchObject({ approved: true, always })
    const { digest, device, signature } = body
    expect(verifyDecision(device, { sid, effect, digest, approved: true, always }, signature)).toBe(true)
  })

  test('C20: where no rule would be safe there is no such step; why is said in a line', async () => {
    await begin()
    await laptop.ask(sid, 'bash', { command: 'npm test && rm -r build' })
    await page.getByText('No “always”: this is not one plain command.').waitFor()
    expect(await button('Always for this session…').count()).toBe(0)
    await button('Approve', true).click()
    expect(await laptop.receive(sid, 'decision')).not.toHaveProperty('always')
  })

  test('C11: a call is approved only once its end was on screen; how much follows is said, and a button goes on', async () => {
    await begin()
    const cases = Array.from({ length: 400 }, (_, i) => `case-${i}`).join(' ')
    await laptop.ask(sid, 'bash', { command: `npm test -- ${cases}` })
    const more = button(/^\d+ more lines$/)
    await more.waitFor()
    await fits()
    expect(Number.parseInt(await more.innerText())).toBeGreaterThan(50)
    const approve = button('Approve', true)
    expect(await approve.isDisabled()).toBe(true)
    expect(await button('Always for this session…').isDisabled()).toBe(true)
    expect(await approve.evaluate((element) => element.ariaDescribedByElements?.[0]?.textContent)).toBe(
      'Read it to its end first.',
    )
    // A tap that gets through all the same decides nothing.
    await approve.click({ force: true })
    expect(await page.getByText('Approved').count()).toBe(0)
    await more.focus()
    await until('the end was seen', async () => {
      await page.keyboard.press('Enter')
      return !(await approve.isDisabled())
    })
    await more.waitFor({ state: 'detached' })
    expect(await page.evaluate(() => document.activeElement?.className)).toBe('whole')
    await page.locator('.whole').evaluate((element) => element.scrollTo(0, 0))
    await more.waitFor()
    expect(await approve.isDisabled()).toBe(false)
    await approve.click()
    expect(await laptop.receive(sid, 'decision')).toMatchObject({ approved: true })
  })

  test('C11: what is said to follow are lines of the command, and the whole screen shows it, too', async () => {
    await begin()
    const line = (i: number): string =>
      `echo line ${i} of a script that takes more than one row of the screen`
    const command = Array.from({ length: 80 }, (_, i) => line(i)).join('\n')
    await laptop.ask(sid, 'bash', { command })
    const more = button(/^\d+ more lines$/)
    await more.waitFor()
    const said = Number.parseInt(await more.innerText())
    expect(said).toBeGreaterThan(70)
    expect(said).toBeLessThan(80)
    await button('Full screen').click()
    await dialog().getByRole('region', { name: 'Command', exact: true }).waitFor()
    await fits()
    await dialog()
      .locator('.whole')
      .evaluate((element) => element.scrollTo(0, 1e6))
    await button('Close').click()
    await until('the end was seen', async () => !(await button('Approve', true).isDisabled()))
  })

  test('a denial can say why; what is typed stays until it is sent (F15)', async () => {
    await begin()
    await laptop.ask(sid, 'bash', { command: 'rm -r build' })
    await button('Deny with a note…').click()
    await page.getByLabel('Why not').fill('There is a script for that.')
    await fits()
    await page.reload()
    await button('Deny with a note…').click()
    await button('Deny with note').click()
    const said = (await laptop.receive(sid, 'decision')) as { approved: boolean; note?: string }
    expect(said).toMatchObject({ approved: false, note: 'There is a script for that.' })
  })

  test('C21: what a rule decided is a line among the others, not a card', async () => {
    await begin()
    const effect = await laptop.ask(sid, 'bash', { command: 'rm -r /' })
    await laptop.append(sid, 'outcome', {
      effect,
      now: 0,
      result: { approved: false, note: 'A rule forbids it.' },
    })
    await button(/Run rm -r \/.*not allowed/).click()
    await page.getByText('A rule forbids it.').waitFor()
    expect(await page.getByRole('region', { name: /^Approval/ }).count()).toBe(0)
  })

  test('a plan is shown as prose; approving it says in which mode to go on, and that goes first', async () => {
    await begin()
    await button(/^Mode: /).click()
    await radio('Plan').check()
    await button('Choose').click()
    await laptop.receive(sid, 'mode')
    const effect = await laptop.ask(sid, 'propose_plan', { plan: PLAN })
    const card = page.getByRole('region', { name: 'Approval: Go ahead with this plan?' })
    await card.getByRole('listitem').filter({ hasText: 'run the whole suite.' }).waitFor()
    expect(await button('Always for this session…').count()).toBe(0)
    expect(await page.getByRole('region', { name: 'Plan as it was written' }).count()).toBe(0)
    await radio('Edit files').check()
    await radio('Ask first').check()
    await fits()
    await button('Approve', true).click()
    await until('both are there', () => laptop.held.get(sid)?.inbox.length === 2)
    expect(laptop.held.get(sid)?.inbox.map(({ kind }) => kind)).toEqual(['mode', 'decision'])
    expect(await laptop.receive(sid, 'mode')).toMatchObject({ mode: 'ask', revision: 1 })
    const { device } = (await laptop.receive(sid, 'decision')) as DecisionCommand
    await laptop.decided(sid, effect, true, device)
    await button(/^done: Proposed a plan/).waitFor()
  })
})

test('C11: a plan with code is shown once, what stands at its fence with it, and the buttons are in sight', async () => {
  await begin()
  const code = Array.from({ length: 30 }, (_, i) => `step(${i})`).join('\n')
  await laptop.ask(sid, 'propose_plan', {
    plan: `I would write\n\n\`\`\`ts now\n${code}\n\`\`\`\n\nand test it.`,
  })
  const plan = page.getByRole('region', { name: 'Plan', exact: true })
  await plan.getByText('ts now').waitFor()
  expect(await page.getByRole('region', { name: 'Plan as it was written' }).count()).toBe(0)
  const [foot, composer] = await Promise.all([
    button('Approve', true).evaluate((element) => element.getBoundingClientRect().bottom),
    page.locator('.composer').evaluate((element) => element.getBoundingClientRect().top),
  ])
  expect(foot).toBeLessThan(composer)
})

test('C11: what a plan’s Markdown would not show is shown as it was written', async () => {
  await begin()
  const plan =
    'Read [the notes](https://example.com/a).\n\n[x]: https://example.com "and then erase the disk"'
  await laptop.ask(sid, 'propose_plan', { plan })
  await page.getByRole('region', { name: 'Plan as it was written' }).getByText('erase the disk').waitFor()
})

test('nothing on the way broke the content security policy or threw', () => {
  expect(phone.errors).toEqual([])
})
