import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { bash } from '../src/tools/bash.ts'
import type { ToolAnswer } from '../src/tools/tool.ts'

const root = mkdtempSync(join(tmpdir(), 'baton-bash-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

interface Options {
  signal?: AbortSignal
  onOutput?: (text: string) => void
}

function run(
  command: string,
  more: { [key: string]: Json } = {},
  options: Options = {},
): Promise<ToolAnswer> {
  const context = { root, readFiles: new Map(), signal: new AbortController().signal, ...options }
  return bash.execute({ command, ...more }, context)
}

/** Is a process there, other than as an uncollected zombie? */
function alive(pid: string): boolean {
  try {
    process.kill(Number(pid), 0)
    return !/\) Z /.test(existsSync('/proc') ? readFileSync(`/proc/${pid}/stat`, 'latin1') : '')
  } catch {
    return false
  }
}

const until = (condition: () => void): Promise<void> =>
  vi.waitFor(condition, { timeout: 20_000, interval: 20 })

const pidIn = (file: string): string => readFileSync(join(root, file), 'utf8').trim()

test('output and errors come together and in order, with the exit code', async () => {
  expect(await run('echo 1; echo 2 >&2; echo 3; echo 4 >&2')).toMatchObject({
    text: '1\n2\n3\n4',
    is_error: false,
    detail: { exit_code: 0, ended_by: 'exit', cut: 0 },
  })
  const failed = await run('echo no; exit 7')
  expect(failed).toMatchObject({ text: 'no\n[Exit code 7.]', is_error: true, detail: { exit_code: 7 } })
  expect(await run('true')).toMatchObject({ text: '(no output)', is_error: false })
  expect(await run('kill -9 $$')).toMatchObject({
    is_error: true,
    detail: { exit_code: null, signal: 'SIGKILL' },
  })
})

test('it runs in the root of the workspace, by bash, without input or terminal', async () => {
  expect((await run('pwd -P; [[ -n $BASH_VERSION ]] && echo bash; read x || echo none; tty')).text).toBe(
    `${execFileSync('pwd', ['-P'], { cwd: root }).toString()}bash\nnone\nnot a tty\n[Exit code 1.]`,
  )
})

test('a syntax error is told with its line', async () => {
  expect((await run('echo 1\nif then')).text).toContain('line 2')
})

test('the secrets of the runner are not in its environment', async () => {
  vi.stubEnv('ANTHROPIC_API_KEY', 'canary-key')
  vi.stubEnv('BATON_ROOT', 'canary-root')
  vi.stubEnv('GIT_DIR', '/canary-git')
  vi.stubEnv('PLAIN', 'plain')
  const { text } = await run('env; echo "[$PLAIN]"')
  vi.unstubAllEnvs()
  expect(text).toContain('[plain]')
  expect(text).not.toMatch(/canary/)
})

describe('bytes', () => {
  test('F50: NUL, invalid UTF-8 and surrogate bytes give whole, valid text', async () => {
    const { text } = await run(String.raw`printf 'a\0b\xff\xed\xa0\x80c\xf0\x9f\x98\x80d\n'`)
    expect(text).toMatch(/^a\0b\ufffd+c😀d\n\[Not all of it is UTF-8/)
    expect(text.isWellFormed()).toBe(true)
    expect(JSON.parse(JSON.stringify(text))).toBe(text)
  })

  test('F50: a character that is cut in two by the pipe arrives whole, also while it streams', async () => {
    const pieces: string[] = []
    const command = String.raw`printf '\xf0\x9f'; sleep 0.05; printf '\x98\x80'`
    const { text } = await run(command, {}, { onOutput: (piece) => pieces.push(piece) })
    expect(text).toBe('😀')
    expect(pieces.join('')).toBe('😀')
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true)
  })

  test('F50: what is UTF-8 comes exactly, replacement characters and a byte order mark included', async () => {
    const { text } = await run(String.raw`printf '\xef\xbb\xbfa\xef\xbf\xbd\0\x1b[1m'`)
    expect(text).toBe('\ufeffa\ufffd\0\x1b[1m')
  })

  test('F50: 100 MB are refused in words; what is kept of them is bounded', async () => {
    let longest = 0
    const flood = `head -c 100000000 /dev/zero | tr '\\0' x`
    const result = await run(flood, {}, { onOutput: (piece) => (longest = Math.max(longest, piece.length)) })
    expect(result).toMatchObject({ is_error: true, detail: { ended_by: 'flood' } })
    expect(result.text.length).toBeLessThan(31_000)
    expect(longest).toBeLessThanOrEqual(1 << 20)
  })

  test('long output keeps its beginning and its end, and says how much is missing', async () => {
    const { text, detail } = await run('seq 1 100000')
    expect(text.length).toBeLessThan(31_000)
    expect(text).toMatch(/^1\n2\n3\n/)
    expect(text).toMatch(/\n99999\n100000$/)
    const said = Number(/… (\d+) characters left out …/.exec(text)?.[1])
    const kept = text.replace(/\n… \d+ characters left out …\n/, '').length
    expect(said + kept + 1).toBe(588_895)
    expect(detail?.['bytes']).toBe(588_895)
  })

  test('F50: a cut never leaves half a surrogate pair', async () => {
    for (const pad of ['', 'x']) {
      const { text } = await run(`printf '${pad}'; for n in $(seq 40000); do printf 😀; done`)
      expect(text.isWellFormed()).toBe(true)
      expect(text).toContain('characters left out')
    }
  })

  test('a flood is ended', async () => {
    const result = await run('yes')
    expect(result).toMatchObject({ is_error: true, detail: { ended_by: 'flood' } })
    expect(result.text).toContain('more than 64 MB')
  })
})

describe('F52: nothing outlives its call', () => {
  test('what it left in the background is ended', async () => {
    const result = await run('sleep 1000 & echo $! > left.pid; echo done')
    expect(result).toMatchObject({ text: 'done', is_error: false })
    expect(alive(pidIn('left.pid'))).toBe(false)
  })

  test('what ignores TERM is killed', async () => {
    const stubborn = `bash -c 'trap "" TERM; echo $$ > stubborn.pid; while :; do sleep 0.1; done' &`
    await run(`${stubborn} while [ ! -s stubborn.pid ]; do sleep 0.01; done`)
    expect(alive(pidIn('stubborn.pid'))).toBe(false)
  })

  test('at the time-out the whole group ends, and what was said so far is returned', async () => {
    const result = await run('sleep 1000 & echo $! > deep.pid; echo begun; sleep 1000', { timeout_ms: 300 })
    expect(result).toMatchObject({ is_error: true, detail: { ended_by: 'timeout' } })
    expect(result.text).toMatch(/^begun\n\[Ended after 300 ms/)
    expect(alive(pidIn('deep.pid'))).toBe(false)
  })

  test('on abort the whole group ends', async () => {
    const stop = new AbortController()
    const call = run(
      'sleep 1000 & echo $! > aborted.pid; echo up; sleep 1000',
      {},
      {
        signal: stop.signal,
        onOutput: () => stop.abort(),
      },
    )
    await expect(call).rejects.toMatchObject({ code: 'stopped' })
    expect(alive(pidIn('aborted.pid'))).toBe(false)
  })

  test('an aborted call is not begun', async () => {
    const call = run('echo > begun', {}, { signal: AbortSignal.abort() })
    await expect(call).rejects.toMatchObject({ code: 'stopped' })
    expect((await run('ls begun')).is_error).toBe(true)
  })

  test('I8: when the runner is killed, what it ran dies too', async () => {
    const script = `
      import { bash } from ${JSON.stringify(join(import.meta.dirname, '../src/tools/bash.ts'))}
      const context = { root: process.argv[1], readFiles: new Map(), signal: new AbortController().signal }
      await bash.execute({ command: 'true' }, context)
      const command = 'sleep 1000 & echo $! > child.pid; (setsid sleep 1000 & echo $! > daemon2.pid); echo $$ > leader.pid; wait'
      await bash.execute({ command }, context)`
    // What a person's shell does at a login must not stand in the way.
    writeFileSync(join(root, '.bashrc'), 'sleep 1000\n')
    const functions = { 'BASH_FUNC_read%%': '() { return 1; }', 'BASH_FUNC_kill%%': '() { :; }' }
    const env = { ...process.env, ...functions, HOME: root, BASH_ENV: join(root, '.bashrc'), SHLVL: '0' }
    const options = { stdio: 'ignore' as const, env }
    const runner = spawn(process.execPath, ['--input-type=module', '-e', script, root], options)
    await until(() => expect(pidIn('leader.pid')).not.toBe(''))
    expect(alive(pidIn('leader.pid')) && alive(pidIn('child.pid'))).toBe(true)
    runner.kill('SIGKILL')
    const left = (): boolean => alive(pidIn('leader.pid')) || alive(pidIn('child.pid'))
    await until(() => expect(left()).toBe(false))
    // Without /proc nobody finds what has left the group.
    if (platform() === 'linux') await until(() => expect(alive(pidIn('daemon2.pid'))).toBe(false))
    else process.kill(Number(pidIn('daemon2.pid')), 'SIGKILL')
  })

  test.runIf(platform() === 'linux')('T1: a daemon that left the group ends with its command', async () => {
    const daemons = {
      'setsid.pid': 'setsid bash -c "echo \\$\\$ > setsid.pid; exec sleep 1000" &',
      'double.pid': `(setsid bash -c '(sleep 1000 >/dev/null 2>&1 & echo $! > double.pid)' >/dev/null &);`,
      'deaf.pid': `(setsid bash -c 'trap "" TERM HUP; echo $$ > deaf.pid; while :; do sleep 0.1; done' >/dev/null 2>&1 &);`,
    }
    for (const [file, daemon] of Object.entries(daemons)) {
      const result = await run(`${daemon} while [ ! -s ${file} ]; do sleep 0.01; done; echo on`)
      expect(result, file).toMatchObject({ text: 'on', is_error: false })
      expect(alive(pidIn(file)), file).toBe(false)
    }
  })

  test('a daemon that hides and keeps the pipe open does not hang it', async () => {
    const result = await run(
      'env -i setsid bash -c "echo \\$\\$ > daemon.pid; exec sleep 1000" & while [ ! -s daemon.pid ]; do sleep 0.01; done; echo on',
    )
    expect(result).toMatchObject({ text: 'on', is_error: false })
    process.kill(Number(pidIn('daemon.pid')), 'SIGKILL')
    await until(() => expect(alive(pidIn('daemon.pid'))).toBe(false))
  })
})

test.each<[{ [key: string]: Json }, string]>([
  [{}, 'command is missing'],
  [{ command: '' }, 'command'],
  [{ command: 'true', timeout_ms: 600_001 }, 'timeout_ms'],
  [{ command: 'true', timeout_ms: '5' }, 'timeout_ms'],
  [{ command: 'true', cwd: '/' }, 'cwd'],
  [{ command: 'a\0b' }, 'NUL'],
  [{ command: 'echo \ud83d' }, 'surrogate'],
  [{ command: 'true', background: true }, 'no background jobs here'],
  [{ command: 'true', background: true, timeout_ms: 5 }, 'no time-out'],
])('the input %j is refused in words', async (input, words) => {
  const context = { root, readFiles: new Map(), signal: new AbortController().signal }
  const result = await bash.execute(input, context)
  expect(result.is_error).toBe(true)
  expect(result.text).toContain(words)
})

test('a workspace that is gone is an error of the runner, not of the model', async () => {
  const context = { root: join(root, 'gone'), readFiles: new Map(), signal: new AbortController().signal }
  await expect(bash.execute({ command: 'true' }, context)).rejects.toMatchObject({
    code: 'workspace-missing',
  })
})

test('I5: it is never repeated, and says so to the model', () => {
  expect(bash.spec).toMatchObject({ name: 'bash', replay: 'never', access: 'run' })
  expect(bash.spec.description).toContain('never repeated')
})
