import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alive } from '@baton/test/processes.ts'
import { until } from '@baton/test/until.ts'
import type { Json } from '@baton/shared/guest.ts'
import { JobLog } from '../src/jobs/log.ts'
import { Jobs } from '../src/jobs/jobs.ts'
import { bash } from '../src/tools/bash.ts'
import { job } from '../src/tools/job.ts'
import { runGroup } from '../src/tools/process-group.ts'
import type { ToolAnswer, ToolContext } from '../src/tools/tool.ts'

let root: string
let jobs: Jobs
let context: ToolContext

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'baton-jobs-'))
  jobs = new Jobs(join(root, 'logs'), 'lap top')
  context = contextOf(jobs)
})
afterEach(async () => {
  await jobs.end()
  rmSync(root, { recursive: true, force: true })
})

function contextOf(own: Jobs): ToolContext {
  const stay = { jobs: own, end: () => own.end() }
  return { root, readFiles: new Map(), signal: new AbortController().signal, stay }
}

async function start(command: string): Promise<string> {
  const { text, detail } = await bash.execute({ command, background: true }, context)
  expect(text).toContain('Started in the background')
  const id = detail?.['job']
  return typeof id === 'string' ? id : ''
}

const use = (input: { [key: string]: Json }, own = context) => job.execute(input, own)

const pidIn = async (file: string): Promise<number> =>
  until(`${file} is written`, () => Number(readFileSync(join(root, file), 'utf8').trim()))

test('T2: a job goes on after its call, and is looked at and stopped by its id', async () => {
  const id = await start('echo up; sleep 1000 & echo $! > child.pid; wait')
  expect(id).toMatch(/^job-1-[a-z0-9]{4}@lap-top$/)
  const pid = await pidIn('child.pid')
  expect(alive(pid)).toBe(true)
  const out = await until('it has written', async () => {
    const result = await use({ action: 'output', id })
    return result.text.startsWith('up\n') && result
  })
  expect(out).toMatchObject({ is_error: false, detail: { running: true, from: 0, next: 3 } })
  expect(out.text).toContain('read on with offset 3')
  expect((await use({ action: 'status' })).text).toMatch(new RegExp(`^${id} is running for .*: echo up`))
  expect((await use({ action: 'stop', id })).text).toContain('was stopped')
  expect(alive(pid)).toBe(false)
  // Stopping it again changes nothing.
  expect((await use({ action: 'stop', id })).text).toContain('was stopped')
})

test('T2: waiting returns at the end of the job, with its exit code', async () => {
  const id = await start('read -t 0.2 < <(sleep 5); echo over; exit 3')
  const result = await use({ action: 'output', id, wait_ms: 60_000 })
  expect(result.text).toMatch(/^over\n\[.* ended after .* with exit code 3; 5 bytes/)
  expect(result).toMatchObject({ detail: { running: false } })
})

test('T2: jobs end with the stay, daemons included, and none starts any more', async () => {
  const id = await start('(setsid sleep 1000 & echo $! > daemon.pid); sleep 1000 & echo $! > child.pid; wait')
  const pids = [await pidIn('child.pid'), await pidIn('daemon.pid')]
  await jobs.end()
  expect(alive(pids[0] ?? 0)).toBe(false)
  if (process.platform === 'linux') expect(alive(pids[1] ?? 0)).toBe(false)
  else process.kill(pids[1] ?? 0, 'SIGKILL')
  expect((await use({ action: 'status', id })).text).toContain('because the session left this machine')
  expect(await bash.execute({ command: 'true', background: true }, context)).toMatchObject({ is_error: true })
})

test('T3: after a move the job is told to have ended there; back here its output can still be read', async () => {
  const id = await start('echo kept')
  await use({ action: 'status', id, wait_ms: 60_000 })
  const elsewhere = contextOf(new Jobs(join(root, 'other'), 'cloud-1'))
  for (const action of ['status', 'output', 'stop']) {
    const result = await use({ action, id }, elsewhere)
    expect(result).toMatchObject({ is_error: true, detail: { code: 'job-left' } })
    expect(result.text).toContain('ended when the session left lap-top')
  }
  expect((await use({ action: 'status' }, elsewhere)).text).toContain(
    'started elsewhere ended when the session',
  )
  const back = contextOf(new Jobs(join(root, 'logs'), 'lap top'))
  expect((await use({ action: 'output', id }, back)).text).toMatch(/^kept\n\[.* with exit code 0/)
})

test('T3: a job whose runner was killed is told so by the next one, and nothing of it is left running', async () => {
  const script = `
    import { Jobs } from ${JSON.stringify(join(import.meta.dirname, '../src/jobs/jobs.ts'))}
    const jobs = new Jobs(process.argv[1] + '/logs', 'lap top')
    const args = ['-c', 'echo begun; echo $$ > job.pid; exec sleep 1000']
    const { id } = jobs.start('x', { program: 'bash', args, cwd: process.argv[1], env: { PATH: process.env.PATH } })
    process.stdout.write(id)`
  const runner = spawn(process.execPath, ['--input-type=module', '-e', script, root])
  let id = ''
  runner.stdout.on('data', (chunk: Buffer) => (id += chunk.toString()))
  const pid = await pidIn('job.pid')
  await until('its log has come', () =>
    readdirSync(join(root, 'logs')).some((name) => statSync(join(root, 'logs', name)).size === 6),
  )
  runner.kill('SIGKILL')
  await until('the job is dead', () => !alive(pid))
  expect((await use({ action: 'output', id })).text).toMatch(
    /^begun\n\[.*because the session left this machine/,
  )
})

test('T2: a full disk cuts the log of a job and is told; the job goes on, and so does its runner', async () => {
  const script = `
    import { Jobs } from ${JSON.stringify(join(import.meta.dirname, '../src/jobs/jobs.ts'))}
    import { job } from ${JSON.stringify(join(import.meta.dirname, '../src/tools/job.ts'))}
    const root = process.argv[1]
    const jobs = new Jobs(root + '/logs', 'lap top')
    const args = ['-c', 'head -c 300000 /dev/zero | tr "\\\\0" a; echo end > ' + root + '/end.txt; exit 3']
    const { id } = jobs.start('x', { program: 'bash', args, cwd: root, env: { PATH: process.env.PATH } })
    const context = { root, readFiles: new Map(), signal: new AbortController().signal, stay: { jobs } }
    const input = { action: 'output', id, wait_ms: 60000 }
    process.stdout.write(JSON.stringify(await job.execute(input, context)))`
  // What a process may write into one file stands for a disk: 64 KB.
  const limited = ['-c', 'ulimit -f 64 && exec "$0" "$@"', process.execPath]
  // With a pipe as its input, bash may take itself for a remote login and run the person's .bashrc.
  const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe']
  const runner = spawn('bash', [...limited, '--input-type=module', '-e', script, root], { stdio })
  let said = ''
  let complaints = ''
  runner.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  runner.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()))
  const [code] = (await once(runner, 'close')) as [number | null]
  expect(complaints).toBe('')
  expect(code).toBe(0)
  const { text, detail } = JSON.parse(said) as ToolAnswer
  expect(detail).toMatchObject({ running: false, bytes: 64 << 10 })
  expect(text).toMatch(/could not be kept: EFBIG/)
  expect(text).toContain('with exit code 3; 65536 bytes of output, all that could be kept')
  expect(readFileSync(join(root, 'end.txt'), 'utf8')).toBe('end\n')
})

test('T2: a job whose records can not be written runs and ends all the same', async () => {
  const id = await start('echo $$ > job.pid; exec sleep 1000')
  await pidIn('job.pid')
  rmSync(join(root, 'logs'), { recursive: true })
  expect((await use({ action: 'stop', id })).text).toContain('was stopped')
})

test('T1: what reads the output of a command and fails ends the command, and only that', async () => {
  const run = runGroup('bash', ['-c', 'echo $$ > loud.pid; while :; do echo loud; done'], {
    ...{ cwd: root, env: { PATH: process.env['PATH'] ?? '' }, flood_bytes: 1 << 30 },
    signal: new AbortController().signal,
    onBytes: () => {
      throw new Error('no room')
    },
  })
  await expect(run).rejects.toThrow('no room')
  expect(alive(await pidIn('loud.pid'))).toBe(false)
})

test.each([
  [{ action: 'output' }, 'Which job?'],
  [{ action: 'stop', id: 'job-9' }, 'There is no job job-9. There are none.'],
  [{ action: 'output', id: '../../etc/passwd' }, 'There is no job'],
  [{ action: 'start' }, 'action'],
])('%j is answered in words', async (input, words) => {
  const result = await use(input)
  expect(result.is_error).toBe(true)
  expect(result.text).toContain(words)
})

test('no more jobs than eight run at once', async () => {
  for (let at = 0; at < 8; at++) await start('sleep 1000')
  const ninth = await bash.execute({ command: 'true', background: true }, context)
  expect(ninth).toMatchObject({ is_error: true, detail: { code: 'too-many' } })
})

test('T2: logs are outside the work tree, readable only by their owner, and old ones go', async () => {
  for (let at = 0; at < 20; at++) await use({ action: 'status', id: await start('true'), wait_ms: 60_000 })
  const names = readdirSync(join(root, 'logs'))
  expect(names.filter((name) => name.endsWith('.json')).length).toBeLessThanOrEqual(17)
  for (const name of names) expect(statSync(join(root, 'logs', name)).mode & 0o077).toBe(0)
})

test('T2: a log keeps the newest output, counts all of it and never cuts a character', () => {
  const log = new JobLog(join(root, 'a.log'), 100)
  const text = '😀x'.repeat(200)
  for (const byte of Buffer.from(text)) log.append(Uint8Array.of(byte))
  expect(log.bytes).toBe(1000)
  expect(statSync(join(root, 'a.log')).size + statSync(join(root, 'a.log.1')).size).toBeLessThanOrEqual(200)
  const pieces: string[] = []
  for (let at = 0; ;) {
    const part = log.read(at, 7, true)
    if (part.text === '') break
    if (at > 0) expect(part.from).toBe(at)
    pieces.push(part.text)
    at = part.next
  }
  const read = pieces.join('')
  expect(read.isWellFormed() && text.endsWith(read)).toBe(true)
  expect(read.length).toBeGreaterThan(50)
})
