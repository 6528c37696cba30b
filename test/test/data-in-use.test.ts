/** One runner, one data folder. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { secondRunner } from '@baton/runner/cli/second-runner.ts'
import { lockData } from '@baton/runner/daemon/data-lock.ts'
import { commandsOf } from '@baton/shared/shell.ts'
import { Ground } from '../src/processes.ts'
import { makeRepo } from '../src/repo.ts'

let ground: Ground
beforeEach(async () => {
  ground = await Ground.open()
})
afterEach(() => ground.close())

test('Z9: a second runner on one data folder is refused in words; the first one goes on, and a killed one leaves no lock', async () => {
  const relay = await ground.relay()
  const first = await ground.runner({ name: 'one', args: ['--relay', relay.url] })
  const workspace = await ground.newFolder('workspace')
  makeRepo(workspace)
  const again = ['runner', '--name', 'two', '--data', first.data, '--workspace', workspace]
  const second = await ground.baton(again)
  expect((await second.exit).code).toBe(1)
  expect(second.output).toMatch(
    /^baton: Another Baton runs on this data folder\. \(.*runner\) Every runner needs .* of its own\./m,
  )
  expect(second.output).not.toMatch(/^\s+at /m)
  expect(first.process.output).not.toContain('connection lost')

  first.process.kill('SIGKILL')
  await first.process.exit
  const third = await ground.runner({ name: 'one', data: first.data })
  third.process.kill('SIGTERM')
  expect((await third.process.exit).code).toBe(0)
})

test('Z9: what it says to type for a runner more does that, also with a link that the refused one was given', async () => {
  const relay = await ground.relay()
  const first = await ground.runner({ name: 'one', args: ['--relay', relay.url, '--pool', 'cloud'] })
  const words = ['runner', '--name', 'two', '--pool', 'cloud', '--data', first.data]
  const refused = await ground.baton(words)
  await refused.exit
  const [pair = [], run = []] = commandsIn(refused.output)
  const paired = await ground.baton([...pair, '--json'])
  const [, link = ''] = await paired.waitForOutput(/"link":"([^"]+)"/)
  const again = await ground.baton([...words, '--join', link])
  await again.exit
  expect(commandsIn(again.output)).toEqual([run.map((word) => (word === '<LINK>' ? link : word))])
  const second = await ground.baton(commandsIn(again.output)[0] ?? [])
  await second.waitForOutput(/two: serving pool cloud/)
})

/** What stands there to be typed after `baton`. */
const commandsIn = (output: string): string[][] =>
  Array.from(output.matchAll(/^  baton ([^#\n]*(?:#pair[^\n]*)?)/gm), ([, line = '']) =>
    (commandsOf(line).commands[0]?.words ?? []).map(({ text }) => text),
  )

test('a runner more keeps its flags, and gets a folder, a name and a port that are free', () => {
  const flags = { pool: ['cloud', 'big'], sandbox: true, metrics: '0.0.0.0:9464', workspace: ["/a b/it's"] }
  const taken = new Set(['/d/baton-2'])
  const at = { data: '/d/baton', name: 'vm', isTaken: (folder: string) => taken.has(folder) }
  expect(secondRunner(flags, at).split('\n')).toEqual([
    'baton pair --data /d/baton    # prints the <LINK>',
    "baton runner --data /d/baton-3 --name vm-3 --pool cloud --pool big --metrics 0.0.0.0:9465 --workspace '/a b/it'\\''s' --sandbox --join '<LINK>'",
  ])
})

test('Z9: the folder is free when its runner has ended, by whatever name it is called', async () => {
  const data = await ground.newFolder('data')
  const deep = join(data, 'x'.repeat(120))
  for (const folder of [data, deep]) {
    await mkdir(folder, { recursive: true })
    const lock = await lockData(folder)
    await expect(lockData(`${folder}/../${folder.split('/').at(-1)}`)).rejects.toMatchObject({
      code: 'data-in-use',
    })
    await lock[Symbol.asyncDispose]()
    const next = await lockData(folder)
    await next[Symbol.asyncDispose]()
  }
})
