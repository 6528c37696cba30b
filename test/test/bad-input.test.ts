/** What people and machines get wrong: each a clear line, a non-zero exit where a command ends, and nothing lost. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { loadIdentity } from '@baton/runner/daemon/identity.ts'
import { TestClient } from '../src/client.ts'
import { Cluster } from '../src/cluster.ts'
import { Ground, type Relay } from '../src/processes.ts'
import { makeRepo } from '../src/repo.ts'

let ground: Ground
beforeAll(async () => {
  ground = await Ground.open()
})
afterAll(() => ground.close())

/** Runs a command to its end. */
async function ends(args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  const started = await ground.baton(args, options)
  const { code } = await started.exit
  return { code, output: started.output }
}

function expectClear({ code, output }: { code: number | null; output: string }, words: RegExp): void {
  expect(code).not.toBe(0)
  expect(output).toMatch(words)
  // One line for people, no stack.
  expect(output.split('\n').filter((line) => line.startsWith('baton: '))).toHaveLength(1)
  expect(output).not.toMatch(/^\s+at /m)
}

const failed = (entries: Opened[]): boolean =>
  entries.some((entry) => entry.kind === 'event' && entry.body.type === 'failed')

describe('the command line', () => {
  it('names an unknown command and an unknown option', async () => {
    expectClear(await ends(['dance']), /no command "dance"/)
    expectClear(await ends(['ls', '--dance']), /--dance/)
    expectClear(await ends(['up', '--port', 'x']), /--port takes a whole number/)
  })

  it('says what to do on a machine without an account', async () => {
    const data = await ground.newFolder('none')
    expectClear(await ends(['ls', '--data', data]), /no account yet.*--join/)
    expectClear(await ends(['runner', '--data', data]), /no account yet/)
  })

  it('tells errors as JSON to who asked for JSON, on standard output', async () => {
    const data = await ground.newFolder('json')
    const { code, output } = await ends(['ls', '--json', '--data', data])
    expect(code).toBe(1)
    expect(JSON.parse(output)).toMatchObject({
      error: { code: 'no-identity', todo: expect.stringContaining('--join') as string },
    })
  })

  it('refuses a data folder that is a file, or whose identity is damaged', async () => {
    const folder = await ground.newFolder('broken')
    const file = join(folder, 'file')
    await writeFile(file, '')
    expectClear(await ends(['up', '--port', '0', '--data', file]), /data folder can not be used/)
    await writeFile(join(folder, 'identity.json'), '{"v":1')
    await writeFile(join(folder, 'relay.json'), '{"origin":"http://127.0.0.1:1"}')
    expectClear(await ends(['ls', '--data', folder]), /identity file is damaged/)
  })

  it('refuses a taken port', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const data = await ground.newFolder('taken')
    try {
      expectClear(await ends(['up', '--port', String(port), '--data', data]), /port is in use.*--port/)
    } finally {
      server.close()
    }
  })

  it('refuses damaged pairing links in words', async () => {
    const data = await ground.newFolder('links')
    expectClear(await ends(['runner', '--data', data, '--join', 'http://127.0.0.1:1/']), /link is incomplete/)
    const nowhere = `http://127.0.0.1:1/#pair=${'a'.repeat(43)}`
    expectClear(await ends(['runner', '--data', data, '--join', nowhere]), /can not be reached/)
    expect(existsSync(join(data, 'identity.json'))).toBe(false)
  })
})

describe('pairing and devices', () => {
  let up: Relay
  beforeAll(async () => {
    const repo = await ground.newFolder('repo')
    makeRepo(repo)
    up = await ground.up({ workspace: repo })
  })

  it('F68: a link pairs once; the second time it is told to be used', async () => {
    const [, link = ''] = await (
      await ground.baton(['pair', '--json', '--data', up.data])
    ).waitForOutput(/"link":"([^"]+)"/)
    const first = await ground.newFolder('first')
    const runner = await ground.baton(['runner', '--name', 'first', '--data', first, '--join', link])
    await runner.waitForOutput(/serving/)
    const second = await ground.newFolder('second')
    expectClear(await ends(['runner', '--data', second, '--join', link]), /used already.*baton pair/)
    expect(existsSync(join(second, 'identity.json'))).toBe(false)
  })

  it('a revoked device is told so, ends, and can not come back', async () => {
    const [, link = ''] = await (
      await ground.baton(['pair', '--json', '--data', up.data])
    ).waitForOutput(/"link":"([^"]+)"/)
    const data = await ground.newFolder('revoked')
    const runner = await ground.baton(['runner', '--name', 'gone', '--data', data, '--join', link])
    await runner.waitForOutput(/serving/)
    const [mine, its] = [await loadIdentity(up.data), await loadIdentity(data)]
    if (!mine || !its) throw new Error('no identity')
    await using client = await TestClient.open(up.url, mine.account)
    await client.link.ask('revoke', { device: its.device.id })
    const { code } = await runner.exit
    expect(code).not.toBe(0)
    expect(runner.output).toContain('removed from the account')
    expectClear(await ends(['ls', '--data', data]), /removed from the account.*Pair it again/)
  })
})

describe('workspaces', () => {
  it('a folder that can not be worked on fails the session in words; the runner goes on', async () => {
    await using cluster = await Cluster.open({ script: 'hello' })
    const { client } = cluster
    const bare = await cluster.ground.newFolder('bare')
    execFileSync('git', ['-C', bare, 'init', '--quiet', '--bare'])
    const one = await cluster.runner('one', { args: ['--workspace', bare] })
    const cases = {
      [bare]: /"workspace-not-git"/,
      '/nowhere': /not served by this runner/,
    }
    for (const [workspace, words] of Object.entries(cases)) {
      const sid = await client.start({ prefer: one.id }, { agent: 'coder', workspace })
      const entries = await client.untilEntries(sid, 'the session has failed', failed)
      expect(JSON.stringify(entries)).toMatch(words)
      expect((await client.info(sid)).status).toBe('failed')
    }
    const sid = await cluster.session(one)
    await client.command(sid, 'prompt', { text: 'hello' })
    await client.untilEntries(sid, 'it works in a good one', (entries) =>
      JSON.stringify(entries).includes('from the model'),
    )
  })

  it('an agent that does not exist fails the session in words', async () => {
    await using cluster = await Cluster.open({ script: 'hello' })
    const one = await cluster.runner('one')
    for (const agent of ['nobody', '../../etc/passwd']) {
      const sid = await cluster.client.start({ prefer: one.id }, { agent, workspace: cluster.repo })
      const entries = await cluster.client.untilEntries(sid, 'the session has failed', failed)
      expect(JSON.stringify(entries)).toContain('agent-invalid')
    }
  })
})

describe('no disk space', () => {
  /** A disk of 2 MB, if this machine lets us have one. */
  async function smallDisk(): Promise<string | undefined> {
    const folder = await ground.newFolder('small')
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder])
      return folder
    } catch {
      return undefined
    }
  }

  it('a relay that has no room says so before it starts', async (context) => {
    const disk = await smallDisk()
    if (disk === undefined) return context.skip()
    try {
      expectClear(await ends(['relay', '--port', '0', '--data', disk]), /no space left|no room/i)
    } finally {
      execFileSync('umount', [disk])
    }
  })

  it('I11: a runner whose disk is full fails the session in words, keeps what is there, and lives', async (context) => {
    const disk = await smallDisk()
    if (disk === undefined) return context.skip()
    try {
      await using cluster = await Cluster.open({
        script: 'hello',
        repo: { extra: { 'big.bin': 'x'.repeat(3 << 20) } },
      })
      const one = await cluster.runner('one', { data: disk })
      const sid = await cluster.session(one)
      const entries = await cluster.client.untilEntries(sid, 'the session has failed', failed)
      expect(JSON.stringify(entries)).toMatch(/no space left/i)
      expect((await cluster.client.online(1))[0]).toBe(one.id)
      await cluster.kill(one)
    } finally {
      execFileSync('umount', ['-l', disk])
    }
  })
})
