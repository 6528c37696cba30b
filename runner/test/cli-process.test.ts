/** The command as a process: how it ends, and what it says to people and to programs. */
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { saveIdentity, saveRelay } from '../src/daemon/identity.ts'

const CLI = join(import.meta.dirname, '../bin/baton.mjs')

let data: string
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'baton-cli-'))
  const account = newAccount()
  await saveIdentity(data, { account, device: newDevice(account) })
  // Nobody listens there.
  await saveRelay(data, { origin: 'http://127.0.0.1:9' })
})
afterAll(() => rm(data, { recursive: true }))

interface Ended {
  code: number
  out: string
  err: string
}

function baton(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [CLI, ...args],
      { env: { ...process.env, BATON_DATA: data } },
      (error, out, err) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })
}

const wrongIn = (out: string) =>
  (JSON.parse(out) as { error: { code: string; message: string; todo: string } }).error

describe('what is wrong', () => {
  it('V2: is said in the same words with --json; a command without a relay promises nothing', async () => {
    const [people, programs] = await Promise.all([
      baton('prompt', 'x', 'go'),
      baton('prompt', 'x', 'go', '--json'),
    ])
    expect([people.code, programs.code]).toEqual([3, 3])
    const { code, message, todo } = wrongIn(programs.out)
    expect(code).toBe('offline')
    expect(people.err).toBe(`baton: ${message} ${todo}\n`)
    expect(people.err).toContain('http://127.0.0.1:9')
    expect(people.err).not.toMatch(/kept|sent when/)
  })

  it('V2: of a relay is JSON with --json, also what the relay itself finds', async () => {
    for (const args of [['--nope'], ['--port', 'abc'], ['--metrics', 'x']]) {
      const { code, out, err } = await baton('relay', ...args, '--json')
      expect([code, err]).toEqual([2, ''])
      expect(wrongIn(out).code).toBe('usage')
    }
  })

  it('V2: a folder that is not there can not be trusted', async () => {
    const { code, out } = await baton('trust', join(data, 'nosuch'), '--json')
    expect([code, wrongIn(out).code]).toEqual([1, 'workspace-unfit'])
  })
})

describe('output', () => {
  it.each(['stdout', 'both'])(
    'V2: nobody reads %s any more: it ends with 0, without a word',
    async (which) => {
      const child = spawn(process.execPath, [CLI, 'help', '--json'])
      child.stdout.destroy()
      if (which === 'both') child.stderr.destroy()
      let said = ''
      child.stderr.on('data', (text: Buffer) => (said += text.toString()))
      const code = await new Promise((resolve) => child.once('close', resolve))
      expect([code, said]).toEqual([0, ''])
    },
  )

  it('V2: that can not be written is told', async () => {
    const args = ['-c', `"$0" "$@" > /dev/full`, process.execPath, CLI, 'help', '--json']
    const ended = await new Promise<{ code: unknown; err: string }>((resolve) => {
      execFile('sh', args, (error, _out, err) => resolve({ code: error?.code, err }))
    })
    expect(ended).toEqual({ code: 1, err: 'baton: The output can not be written (ENOSPC).\n' })
  })
})
