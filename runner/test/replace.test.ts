import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import { replaceWhole, replaceWholeSync, replaceWith, type Replacing } from '../src/files/replace.ts'

const source = fileURLToPath(new URL('../src/files/replace.ts', import.meta.url))
const folders: string[] = []
const mounted: string[] = []
afterAll(() => {
  for (const path of mounted) execFileSync('umount', ['-l', path])
  for (const path of folders) rmSync(path, { recursive: true, force: true })
})

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-replace-'))
  folders.push(folder)
  path = join(folder, 'record.json')
})

const modeOf = (file: string): number => statSync(file).mode & 0o7777

/** Runs in a process of its own, with the module at hand; `half` is printed when half of the file is written. */
function child(program: string): ReturnType<typeof spawn> {
  const code = `const { replaceWhole, replaceWith } = await import(${JSON.stringify(source)})\n${program}`
  return spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

const ways: [name: string, (content: string | Uint8Array, how?: Replacing) => Promise<void>][] = [
  ['in the background', (content, how) => replaceWhole(path, content, how)],
  ['at once', async (content, how) => replaceWholeSync(path, content, how)],
]

describe.each(ways)('a file is replaced %s', (_, replace) => {
  test('with all of the new content, and nothing else is left', async () => {
    for (const sync of ['folder', 'file', 'none'] as const) {
      await replace(`the longer old content, ${sync}`, { sync })
      await replace('new\u0000\ud83c\udf40', { sync })
      expect(readFileSync(path, 'utf8')).toBe('new\u0000\ud83c\udf40')
    }
    await replace(Uint8Array.of(0, 255, 10))
    expect([...readFileSync(path)]).toEqual([0, 255, 10])
    expect(readdirSync(folder)).toEqual(['record.json'])
  })

  test('only its owner reads what is private, whoever could read the old file', async () => {
    writeFileSync(path, 'old')
    chmodSync(path, 0o644)
    await replace('a key')
    expect(modeOf(path)).toBe(0o600)
  })

  test('a mode that is kept is that of the old file, or the usual one', async () => {
    const umask = process.umask()
    await replace('new', { mode: 'kept' })
    expect(modeOf(path)).toBe(0o666 & ~umask)
    for (const mode of [0o600, 0o755, 0o664]) {
      chmodSync(path, mode)
      await replace(`in ${mode}`, { mode: 'kept' })
      expect(modeOf(path)).toBe(mode)
    }
  })

  test('where it can not be, the old content stays and nothing is left behind', async () => {
    path = join(folder, 'taken')
    writeFileSync(join(folder, 'other'), 'stays')
    // A folder can not be replaced by a file.
    execFileSync('mkdir', ['-p', join(path, 'below')])
    await expect(replace('new')).rejects.toMatchObject({ code: 'EISDIR' })
    expect(readdirSync(folder).toSorted()).toEqual(['other', 'taken'])
    path = join(folder, 'missing', 'record.json')
    await expect(replace('new')).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('I11: a full disk is told in words, and the old content stays', async ({ skip }) => {
    const disk = join(folder, 'disk')
    execFileSync('mkdir', [disk])
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk], { stdio: 'ignore' })
    } catch {
      return skip('mounting a small disk is not allowed here')
    }
    mounted.push(disk)
    path = join(disk, 'record.json')
    await replace('old')
    const failure = await replace(new Uint8Array(2 << 20)).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(failure).toBeInstanceOf(BatonError)
    expect(failure).toMatchObject({ code: 'disk-full' })
    expect((failure as BatonError).message).toContain(path)
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(disk)).toEqual(['record.json'])
    await replace('there is room again')
    expect(readFileSync(path, 'utf8')).toBe('there is room again')
  })

  test('what a killed process left long ago goes; what somebody may still write, and what only looks alike, stays', async () => {
    const name = (n: number): string => join(folder, `.baton-00000000000${n}.tmp`)
    const alike = ['.baton-mine.tmp', 'x.baton-000000000001.tmp', '.baton-000000000001.tmp.txt']
    for (const file of [name(1), name(2), ...alike.map((file) => join(folder, file))])
      writeFileSync(file, 'half')
    for (const file of [name(1), ...alike.map((file) => join(folder, file))]) utimesSync(file, 1, 1)
    await replace('new')
    expect(readdirSync(folder).toSorted()).toEqual(
      ['.baton-000000000002.tmp', ...alike, 'record.json'].toSorted(),
    )
  })
})

describe('in pieces', () => {
  test('content is on the disk before it has its name, and what fills it can still refuse it', async () => {
    await replaceWhole(path, 'old')
    const events: string[] = []
    const told = await replaceWith(path, async (file, temporary) => {
      const sync = file.sync.bind(file)
      file.sync = async () => {
        events.push(`synced while the file is ${readFileSync(path, 'utf8')}`)
        await sync()
      }
      await file.write('ne')
      await file.write('w')
      expect(modeOf(temporary)).toBe(0o600)
      return readFileSync(temporary, 'utf8')
    })
    expect(told).toBe('new')
    expect(events).toEqual(['synced while the file is old'])
    const refusal = new Error('it is not what it should be')
    const refused = replaceWith(path, async (file) => {
      await file.write('bad')
      throw refusal
    })
    await expect(refused).rejects.toBe(refusal)
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(readdirSync(folder)).toEqual(['record.json'])
  })

  test('I11: SIGKILL in the middle leaves the old content', async () => {
    await replaceWhole(path, 'old')
    const killed = child(`await replaceWith(${JSON.stringify(path)}, async (file) => {
      await file.write('half of the ne')
      console.log('half')
      await new Promise(() => setInterval(() => undefined, 1000))
    })`)
    await once(killed.stdout!, 'data')
    killed.kill('SIGKILL')
    await once(killed, 'close')
    expect(readFileSync(path, 'utf8')).toBe('old')
    const left = readdirSync(folder).filter((name) => name !== 'record.json')
    expect(left).toEqual([expect.stringMatching(/^\.baton-[0-9a-f]{12}\.tmp$/)])
    utimesSync(join(folder, left[0]!), 1, 1)
    // The next process that writes there tidies up; this one has looked before.
    const next = child(`await replaceWhole(${JSON.stringify(path)}, 'new')`)
    await once(next, 'close')
    expect(readdirSync(folder)).toEqual(['record.json'])
    expect(readFileSync(path, 'utf8')).toBe('new')
  })

  test('I11: killed at any moment, a file that is replaced again and again is one of those that were written', async () => {
    const size = 200_000
    for (let kill = 0; kill < 8; kill++) {
      const busy = child(`for (let n = 0; ; n++) {
        await replaceWhole(${JSON.stringify(path)}, String(n % 10).repeat(${size}), { sync: 'none' })
        if (n % 5 === 0) console.log(n)
      }`)
      for (let lines = 0; lines <= kill; lines++) await once(busy.stdout!, 'data')
      busy.kill('SIGKILL')
      await once(busy, 'close')
      const text = readFileSync(path, 'utf8')
      expect(text.length).toBe(size)
      expect(text).toBe(text.charAt(0).repeat(size))
    }
  })

  test('many at once replace one file, and it is one of theirs', async () => {
    const contents = Array.from({ length: 20 }, (_, n) => String.fromCharCode(97 + n).repeat(50_000))
    await Promise.all(contents.map((content) => replaceWhole(path, content)))
    expect(contents).toContain(readFileSync(path, 'utf8'))
    expect(readdirSync(folder)).toEqual(['record.json'])
  })
})
