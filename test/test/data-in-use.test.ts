/** One runner, one data folder. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockData } from '@baton/runner/daemon/data-lock.ts'
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
    /^baton: Another Baton runs on this data folder\. \(.*runner\) Stop it, or .*--data DIR/m,
  )
  expect(second.output).not.toMatch(/^\s+at /m)
  expect(first.process.output).not.toContain('connection lost')

  first.process.kill('SIGKILL')
  await first.process.exit
  const third = await ground.runner({ name: 'one', data: first.data })
  third.process.kill('SIGTERM')
  expect((await third.process.exit).code).toBe(0)
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
