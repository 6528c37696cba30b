/** `baton doctor`: what is wrong is found, in time, and what to do is said. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { saveIdentity, saveRelay } from '@baton/runner/daemon/identity.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'

interface Report {
  ok: boolean
  checks: { name: string; state: 'ok' | 'warning' | 'problem'; says: string; todo?: string }[]
}

let cluster: Cluster
let laptop: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'hello' })
  laptop = await cluster.runner('laptop')
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function doctor(
  data: string,
  { env = {}, flags = [] }: { env?: NodeJS.ProcessEnv; flags?: string[] } = {},
) {
  const args = ['doctor', '--json', '--data', data, ...flags]
  const started = await cluster.ground.baton(args, { env, model: cluster.model })
  const { code } = await started.exit
  const report = JSON.parse(started.output) as Report
  const checks = new Map(report.checks.map((check) => [check.name, check]))
  return { code, report, check: (name: string) => checks.get(name) }
}

/** A machine of some account whose relay is at an address. */
async function machine(origin: string): Promise<string> {
  const data = await cluster.ground.newFolder('machine')
  const account = newAccount()
  await saveIdentity(data, { account, device: newDevice(account) })
  await saveRelay(data, { origin })
  return data
}

async function listening(server: Server): Promise<{ origin: string } & AsyncDisposable> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

describe('doctor', () => {
  it('V7, F69: when all is well it says so, part by part, and ends with 0', async () => {
    const { code, report, check } = await doctor(laptop.data)
    expect(report.checks.filter(({ state }) => state === 'problem')).toEqual([])
    expect(code).toBe(0)
    expect(report.ok).toBe(true)
    expect(check('relay')?.says).toContain(cluster.relay.url)
    expect(check('socket')?.says).toMatch(/signed in and answered/)
    expect(check('clock')?.says).toMatch(/agrees with the relay/)
    expect(check('runners')?.says).toMatch(/laptop \(linux \w+, anthropic, \d of 4\)/)
    expect(check('device')?.state).toBe('ok')
    expect(check('limits')?.says).toMatch(/^\d of 1000 sessions, .* of 8\.0 GB stored; 500 frames a second$/)
  })

  it('asks the model for one word only when told to', async () => {
    const before = (await cluster.model.state()).count
    expect((await doctor(laptop.data)).check('model')?.says).toMatch(/can be reached/)
    expect((await cluster.model.state()).count).toBe(before)
    const live = await doctor(laptop.data, { flags: ['--live'] })
    expect(live.check('model')?.says).toMatch(/answers \(\d+ tokens\)/)
    expect((await cluster.model.state()).count).toBe(before + 1)
  })

  it('a key that is missing, or a service that is not there, is told', async () => {
    const none = await doctor(laptop.data, { env: { ANTHROPIC_API_KEY: '' } })
    expect(none.check('model')).toMatchObject({
      state: 'warning',
      todo: expect.stringContaining('ANTHROPIC_API_KEY') as string,
    })
    const away = await doctor(laptop.data, { env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:1' } })
    expect(away.check('model')).toMatchObject({ state: 'problem' })
    expect(away.code).toBe(1)
  })

  it('a machine without an account is told how to get one', async () => {
    const { code, check } = await doctor(await cluster.ground.newFolder('none'))
    expect(code).toBe(1)
    expect(check('account')).toMatchObject({
      state: 'problem',
      todo: expect.stringContaining('--join') as string,
    })
  })

  it('a damaged identity file is told, and stops no other check', async () => {
    const data = await machine(cluster.relay.url)
    await writeFile(join(data, 'identity.json'), '{"v":1')
    const { check } = await doctor(data)
    expect(check('account')).toMatchObject({ state: 'problem' })
    expect(check('relay')?.state).toBe('ok')
  })

  it('F8: nothing listens: it is said, and what to do', async () => {
    const gone = await listening(createServer())
    await gone[Symbol.asyncDispose]()
    const { code, check } = await doctor(await machine(gone.origin))
    expect(code).toBe(1)
    expect(check('relay')).toMatchObject({
      state: 'problem',
      todo: expect.stringContaining('baton up') as string,
    })
    expect(check('relay')?.says).toMatch(/Nothing listens/)
  })

  it('V7, F6: a relay that takes connections and never answers has a deadline, and every other check goes on', async () => {
    await using hanging = await listening(createServer(() => undefined))
    const { code, check } = await doctor(await machine(hanging.origin))
    expect(code).toBe(1)
    expect(check('relay')?.says).toMatch(/did not answer/)
    expect(check('socket')?.says).toMatch(/did not answer/)
    expect(check('git')?.state).toBe('ok')
  })

  it('F69: HTTP works and the socket does not: that is told apart', async () => {
    const proxy = createHttpServer((_request, response) => {
      response.setHeader('content-type', 'application/json')
      response.end('{"status":"ok"}')
    })
    proxy.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    await using half = await listening(proxy)
    const { check } = await doctor(await machine(half.origin))
    expect(check('relay')?.state).toBe('ok')
    expect(check('socket')).toMatchObject({
      state: 'problem',
      todo: expect.stringContaining('WebSocket upgrades') as string,
    })
  })

  it('a clock that is wrong by minutes is told', async () => {
    const wrong = createHttpServer((_request, response) => {
      response.setHeader('date', new Date(Date.now() - 600_000).toUTCString())
      response.end('{"status":"ok"}')
    })
    await using relay = await listening(wrong)
    expect((await doctor(await machine(relay.origin))).check('clock')).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/10 min ahead of the relay/) as string,
    })
  })

  it('a removed device is told so', async () => {
    const other = await cluster.runner('gone')
    await cluster.client.link.ask('revoke', { device: other.id })
    await other.process.exit
    const { code, check } = await doctor(other.data)
    expect(code).toBe(1)
    expect(check('socket')).toMatchObject({
      state: 'problem',
      says: expect.stringMatching(/removed/) as string,
    })
  })
})
