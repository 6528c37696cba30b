/** `npm start` as a person uses it, on a repository whose packages and artifacts are there. */
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Process } from '../src/process.ts'
import { Ground } from '../src/processes.ts'
import { makeRepo } from '../src/repo.ts'
import { until } from '../src/until.ts'

const ROOT = join(import.meta.dirname, '../..')
let ground: Ground

beforeEach(async () => {
  ground = await Ground.open()
})
afterEach(async () => {
  await ground.close()
})

/** Runs it in a process group of its own, as a shell with job control does. */
async function npmStart(args: string[]): Promise<Process> {
  const workspace = await ground.newFolder('workspace')
  makeRepo(workspace)
  // npm tells the script where the person stood.
  const env = { INIT_CWD: workspace }
  return ground.start('npm start', 'setsid', ['npm', '--prefix', ROOT, 'start', '--', ...args], {
    cwd: workspace,
    env,
  })
}

async function up(): Promise<{ started: Process; url: string }> {
  const started = await npmStart(['--port', '0', '--data', await ground.newFolder('data')])
  const [, url = ''] = await started.waitForOutput(/Baton is up\.\s+(http:\S+)/)
  return { started, url }
}

/** What ends it: to npm alone, as a service manager would, or to the whole group, as a terminal does on Ctrl-C. */
const WAYS: [string, (pid: number) => void][] = [
  ['SIGTERM to npm', (pid) => process.kill(pid, 'SIGTERM')],
  ['SIGINT to npm', (pid) => process.kill(pid, 'SIGINT')],
  ['Ctrl-C in a terminal', (pid) => process.kill(-pid, 'SIGINT')],
  ['SIGKILL to npm', (pid) => process.kill(pid, 'SIGKILL')],
  ['the terminal closing', (pid) => process.kill(-pid, 'SIGHUP')],
]

describe('npm start', () => {
  test.each(WAYS)('%s ends everything that it started, and nothing else', async (_, end) => {
    const bystander = await ground.start('bystander', process.execPath, ['-e', 'setInterval(() => {}, 1e6)'])
    const { started, url } = await up()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect(ground.find(/redis-server/)).toHaveLength(1)

    end(started.pid)
    await started.exit
    await until('its processes are gone', () => ground.find(/./).length === 1)
    expect(ground.find(/./)).toEqual([bystander.pid])
    await expect(fetch(`${url}/healthz`)).rejects.toThrow()
  })

  test('prints a link that pairs, and what to do next', async () => {
    const { started, url } = await up()
    await started.waitForOutput(/Ctrl-C/)
    expect(started.output).toContain(`${url}/#pair=`)
    expect(started.output).not.toMatch(/^\s+at .+:\d+:\d+/m)
  })

  test('a taken port is one clear line and exit code 1', async () => {
    const other = createServer()
    other.listen(0, '127.0.0.1')
    await once(other, 'listening')
    try {
      const { port } = other.address() as AddressInfo
      const started = await npmStart(['--port', String(port), '--data', await ground.newFolder('data')])
      expect((await started.exit).code).toBe(1)
      expect(started.output).toMatch(/^baton: The port is in use by another program\..*--port N/m)
      expect(ground.find(/./)).toEqual([])
    } finally {
      other.close()
    }
  })

  test('a data folder that is a file is one clear line and exit code 1', async () => {
    const data = join(ground.folder, 'file')
    writeFileSync(data, '')
    chmodSync(data, 0o400)
    const started = await npmStart(['--port', '0', '--data', data])
    expect((await started.exit).code).toBe(1)
    expect(started.output).toMatch(/^baton: The data folder can not be used\..*--data DIR/m)
  })
})
