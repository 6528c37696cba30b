/** The ground under the other tests: what it starts it ends, and what it makes is the same every time. */
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { openBrowser, openPhone, PHONE } from '../src/browser.ts'
import type { ModelState } from '../src/model-server.ts'
import { alive, Ground, signal } from '../src/processes.ts'
import { git, makeRepo, treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

/** Prints the pid of a child that ignores SIGTERM, then waits for ever. */
const PARENT = `
  const { spawn } = require('node:child_process')
  const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6)'], { detached: true })
  console.log('child ' + child.pid)
  setInterval(() => {}, 1e6)
`

describe('processes', () => {
  test('closing the ground ends orphans and stopped processes too, and removes its folder', async () => {
    const ground = await Ground.open()
    const parent = await ground.start('parent', process.execPath, ['-e', PARENT])
    const child = Number((await parent.waitForOutput(/child (\d+)/))[1])
    parent.kill('SIGKILL')
    await parent.exit
    signal(child, 'SIGSTOP')
    expect(alive(child)).toBe(true)
    await ground.close()
    expect(alive(child)).toBe(false)
    expect(existsSync(ground.folder)).toBe(false)
  })

  test('closing one ground leaves the processes of another alone', async () => {
    await using other = await Ground.open()
    const bystander = await other.start('bystander', process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    const ground = await Ground.open()
    await ground.start('own', process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    await ground.close()
    expect(bystander.exited).toBeUndefined()
    expect(alive(bystander.pid)).toBe(true)
  })

  test('a test run that was killed is cleared away by the next ground', async () => {
    await using ground = await Ground.open()
    const script = `
      import { Ground } from ${JSON.stringify(join(import.meta.dirname, '../src/processes.ts'))}
      const left = await Ground.open()
      const process = await left.start('left', globalThis.process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
      console.log('left ' + process.pid + ' ' + left.folder + ' .')
    `
    const run = await ground.start('test run', process.execPath, ['--input-type=module', '-e', script])
    const [, pid, folder = ''] = await run.waitForOutput(/left (\d+) (\S+) \./)
    run.kill('SIGKILL')
    await run.exit
    expect(alive(Number(pid))).toBe(true)
    await using next = await Ground.open()
    expect(alive(Number(pid))).toBe(false)
    expect(existsSync(folder)).toBe(false)
    expect(existsSync(next.folder)).toBe(true)
  })

  test('a process that ends instead of getting ready is told with its output', async () => {
    await using ground = await Ground.open()
    const failing = await ground.start('failing', process.execPath, [
      '-e',
      'console.error("no luck"); process.exit(3)',
    ])
    await expect(failing.waitForOutput(/ready/)).rejects.toThrow(
      /ended before it printed[\s\S]*"code":3[\s\S]*no luck/,
    )
  })

  test('SIGSTOP and SIGCONT hold a process and let it go on', async () => {
    await using ground = await Ground.open()
    const counter = await ground.start('counter', process.execPath, [
      '-e',
      'setInterval(() => console.log("tick"), 1)',
    ])
    await counter.waitForOutput(/tick/)
    counter.kill('SIGSTOP')
    await until('it is stopped', () =>
      /^State:\s+T/m.test(readFileSync(`/proc/${counter.pid}/status`, 'utf8')),
    )
    counter.kill('SIGCONT')
    const before = counter.output.length
    await counter.waitFor('it goes on', () => counter.output.length > before)
    expect(await counter.stop()).toEqual({ code: null, signal: 'SIGTERM' })
  })

  test('the surroundings of a test do not reach the product', async () => {
    process.env.ANTHROPIC_API_KEY = 'from outside'
    try {
      await using ground = await Ground.open()
      const env = await ground.start('env', process.execPath, [
        '-e',
        'console.log(JSON.stringify(process.env))',
      ])
      await env.exit
      expect(JSON.parse(env.output)).not.toHaveProperty('ANTHROPIC_API_KEY')
      expect(JSON.parse(env.output)).toHaveProperty('PATH')
    } finally {
      delete process.env.ANTHROPIC_API_KEY
    }
  })
})

test('the model server as a process counts what it is asked, also for whoever comes later', async () => {
  await using ground = await Ground.open()
  const model = await ground.model('task-held')
  const client = new Anthropic({ apiKey: 'k', baseURL: model.url, maxRetries: 0 })
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'go' }]
  const request = {
    model: 'm',
    max_tokens: 9,
    tools: [{ name: 'glob', input_schema: { type: 'object' as const } }],
  }

  const first = await client.messages.stream({ ...request, messages }).finalMessage()
  const call = first.content.find((block) => block.type === 'tool_use')
  messages.push({ role: 'assistant', content: first.content })
  messages.push({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: 'README.md' }],
  })
  const second = client.messages.stream({ ...request, messages }).finalMessage()
  await until('it holds', async () => (await model.state()).gates.middle?.waiting === 1)
  await model.open('middle')
  expect((await second).stop_reason).toBe('tool_use')

  const state = await model.state()
  expect(state).toMatchObject({ count: 2, requests: [{ end: 'answered' }, { end: 'answered' }] })
  model.process.kill('SIGKILL')
  await model.process.exit
  const record = join(ground.folder, '1-model/requests.json')
  expect(JSON.parse(readFileSync(record, 'utf8')) as ModelState).toEqual(state)
})

describe('repositories', () => {
  const folders: string[] = []
  const folder = (): string => {
    folders.push(mkdtempSync(join(tmpdir(), 'baton-repo-')))
    return folders.at(-1) ?? ''
  }
  afterEach(() => {
    for (const path of folders.splice(0)) rmSync(path, { recursive: true })
  })

  test('one seed gives one commit id, another seed another', () => {
    const [a, b, c] = [folder(), folder(), folder()]
    expect(makeRepo(a)).toBe(makeRepo(b))
    expect(makeRepo(c, { seed: 2 })).not.toBe(git(a, 'rev-parse', 'HEAD'))
    expect(git(a, 'status', '--porcelain')).toBe('')
    expect(treeOf(a)).toEqual(treeOf(b))
  })

  test('a tree tells content, mode, links and untracked files', () => {
    const path = folder()
    makeRepo(path)
    const before = treeOf(path)
    writeFileSync(join(path, 'new.txt'), 'x', { mode: 0o755 })
    symlinkSync('new.txt', join(path, 'link'))
    const after = treeOf(path)
    expect(Object.keys(after).filter((name) => !(name in before))).toEqual(['link', 'new.txt'])
    writeFileSync(join(path, 'new.txt'), 'y')
    expect(treeOf(path)['new.txt']).not.toBe(after['new.txt'])
  })
})

test('the browser is a phone with its own storage', async () => {
  await using ground = await Ground.open()
  const browser = await openBrowser(ground.environment())
  try {
    const { page, errors } = await openPhone(browser, { theme: 'dark' })
    await page.setContent(
      '<meta name="viewport" content="width=device-width"><script>throw new Error("loud")</script>',
    )
    const seen = await page.evaluate(() => ({
      width: innerWidth,
      height: innerHeight,
      ratio: devicePixelRatio,
      touch: navigator.maxTouchPoints > 0,
      dark: matchMedia('(prefers-color-scheme: dark)').matches,
    }))
    expect(seen).toEqual({ ...PHONE, ratio: 2, touch: true, dark: true })
    expect(errors).toEqual(['loud'])
  } finally {
    await browser.close()
  }
})
