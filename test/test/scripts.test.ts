/** The scripts that run before anything is installed, as the programs that they are. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { agrees } from '../../scripts/lib/packages.mjs'

const LIB = join(import.meta.dirname, '../../scripts/lib')
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-scripts-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

/** Puts a program on the only PATH that the script under test sees. */
function program(name: string, body: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${body}\n`)
  chmodSync(join(folder, name), 0o755)
}

/** Runs a few lines of a script under the frame that all scripts have. */
function runScript(lines: string) {
  const code = `
    import { script, step, Refusal } from '${LIB}/progress.mjs'
    import { run } from '${LIB}/process.mjs'
    import { ensurePrograms } from '${LIB}/system.mjs'
    await script(async () => { ${lines} })
  `
  return spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { PATH: folder, FOLDER: folder },
  })
}

describe('npm packages', () => {
  const lock = (packages: Parameters<typeof agrees>[0]['packages']) => ({ packages })
  const wanted = lock({
    '': { version: '1.0.0' },
    'node_modules/a': { version: '1.0.0', integrity: 'x' },
    'node_modules/b-darwin': { version: '1.0.0', integrity: 'y', optional: true },
    'node_modules/@baton/shared': { link: true, resolved: 'shared' },
  })
  const here = {
    'node_modules/a': { version: '1.0.0', integrity: 'x' },
    'node_modules/@baton/shared': { link: true },
  }

  test('what is installed agrees, whatever other platforms need', () => {
    expect(agrees(wanted, lock(here))).toBe(true)
  })

  test('another version, other bytes, or a missing package do not', () => {
    expect(agrees(wanted, lock({ ...here, 'node_modules/a': { version: '1.0.1', integrity: 'x' } }))).toBe(
      false,
    )
    expect(agrees(wanted, lock({ ...here, 'node_modules/a': { version: '1.0.0', integrity: 'z' } }))).toBe(
      false,
    )
    expect(agrees(wanted, lock({ 'node_modules/a': here['node_modules/a'] }))).toBe(false)
  })
})

describe('programs of the system', () => {
  const asRoot = process.getuid?.() === 0

  test('what is there is left alone', () => {
    program('redis-server', 'exit 0')
    const { status, stderr } = runScript(`await ensurePrograms(['redis-server'])`)
    expect([status, stderr]).toEqual([0, ''])
  })

  test.runIf(asRoot)(
    'what is missing is installed: one update, only the missing packages, no recommendations',
    () => {
      symlinkSync('/usr/bin/env', join(folder, 'env'))
      program('chromium', 'exit 0')
      program(
        'apt-get',
        `echo "$@" >> "$FOLDER/log"
       if [ "$1" = install ]; then echo '#!/bin/sh' > "$FOLDER/redis-server"; /bin/chmod +x "$FOLDER/redis-server"; fi`,
      )
      program('systemctl', 'echo "systemctl $@" >> "$FOLDER/log"')
      program('service', 'echo "service $@" >> "$FOLDER/log"')
      program('update-rc.d', 'true')
      const { status, stderr } = runScript(`await ensurePrograms(['redis-server', 'chromium'])`)
      expect(status, stderr).toBe(0)
      const [update, install, service] = readFileSync(join(folder, 'log'), 'utf8').split('\n')
      expect(update).toMatch(/^update /)
      expect(install).toMatch(/^install -y --no-install-recommends .*redis-server$/)
      expect(service).toMatch(
        existsSync('/run/systemd/system') ? /^systemctl disable --now/ : /^service redis-server stop/,
      )
    },
  )

  test.runIf(asRoot)('an installation that fails says why and gives the command', () => {
    symlinkSync('/usr/bin/env', join(folder, 'env'))
    program('apt-get', `echo "E: Unable to fetch some archives" >&2; exit 100`)
    const { status, stderr } = runScript(`await ensurePrograms(['redis-server'])`)
    expect(status).toBe(1)
    expect(stderr).toContain('E: Unable to fetch some archives\napt-get failed. Run it by hand')
    expect(stderr).not.toContain('    at ')
  })

  test('without apt-get one line says what to install', () => {
    program('dnf', 'exit 0')
    const { status, stderr } = runScript(`await ensurePrograms(['redis-server'])`)
    expect(status).toBe(1)
    expect(stderr).toBe(
      'redis-server not found, and this is not Debian. Install with your package manager, e.g.: sudo dnf install redis\n',
    )
  })

  test('without the right to install one line gives the command', () => {
    program('apt-get', 'exit 1')
    const { status, stderr } = runScript(
      `process.getuid = () => 1000; await ensurePrograms(['redis-server'])`,
    )
    expect(status).toBe(1)
    expect(stderr).toBe(
      `redis-server not found, and installing needs root. Run: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends redis-server'\n`,
    )
  })
})

describe('steps and failures', () => {
  test('a step says when it begins and when it is done', () => {
    const { stderr } = runScript(`await step('Making tea', async () => {})`)
    expect(stderr).toBe('Making tea …\nMaking tea: done in 1 s\n')
  })

  test('a refusal is its message and exit code 1', () => {
    const { status, stderr } = runScript(
      `await step('Making tea', () => { throw new Refusal('No water. Open the tap.') })`,
    )
    expect([status, stderr]).toEqual([
      1,
      'Making tea …\nMaking tea: failed after 1 s\nNo water. Open the tap.\n',
    ])
  })

  test('a signal ends the child, then the script, with the code of the signal', () => {
    const { status } = runScript(`
      const child = run('/bin/sleep', ['1000'], { capture: true })
      setTimeout(() => process.kill(process.pid, 'SIGTERM'), 1)
      await child
      console.log('must not be reached')
    `)
    expect(status).toBe(143)
  })

  test('a program that does not exist is told, not thrown', () => {
    const { stdout } = runScript(
      `console.log(JSON.stringify(await run('/nowhere/x', [], { capture: true })))`,
    )
    expect(JSON.parse(stdout)).toMatchObject({ code: 127, output: expect.stringContaining('ENOENT') })
  })
})

describe('builds', () => {
  test('inputs decide: unchanged is current, changed is stale, gone is missing', () => {
    const root = join(folder, 'repo')
    mkdirSync(join(root, 'scripts/lib'), { recursive: true })
    for (const name of ['build', 'process', 'progress', 'root']) {
      symlinkSync(join(LIB, `${name}.mjs`), join(root, `scripts/lib/${name}.mjs`))
    }
    mkdirSync(join(root, 'node_modules/.bin'), { recursive: true })
    symlinkSync(process.execPath, join(root, 'node_modules/.bin/node'))
    writeFileSync(join(root, 'package-lock.json'), '{"packages": {}}')
    mkdirSync(join(root, 'guest/src/engine'), { recursive: true })
    const builder = join(root, 'guest/src/build-engine.ts')
    writeFileSync(
      builder,
      `import fs from 'node:fs'; fs.mkdirSync('guest/dist', { recursive: true });
       for (const name of ['wasm', 'json']) fs.writeFileSync('guest/dist/engine.' + name, ''); fs.appendFileSync('built', 'x')`,
    )
    const build = () => {
      const code = `
        import { ensureBuilt, stateOf } from '${root}/scripts/lib/build.mjs'
        import { script } from '${root}/scripts/lib/progress.mjs'
        await script(async () => { console.log(stateOf('engine')); await ensureBuilt(['engine']) })
      `
      const flags = ['--preserve-symlinks', '--input-type=module', '-e', code]
      const { stdout, stderr, status } = spawnSync(process.execPath, flags, { encoding: 'utf8', cwd: root })
      return { was: stdout.trim(), status, stderr }
    }
    const count = () => readFileSync(join(root, 'built'), 'utf8').length

    expect(build()).toMatchObject({ was: 'missing', status: 0 })
    expect(build()).toMatchObject({ was: 'current', stderr: '' })
    expect(count()).toBe(1)

    writeFileSync(join(root, 'guest/src/engine/new.ts'), '')
    // A lock left by a killed builder blocks nobody.
    writeFileSync(join(root, 'build/lock'), '999999999')
    expect(build()).toMatchObject({ was: 'stale', status: 0 })
    expect(count()).toBe(2)

    writeFileSync(builder, `console.error('line 7 is wrong'); process.exit(1)`)
    const failed = build()
    expect(failed).toMatchObject({ was: 'stale', status: 1 })
    expect(failed.stderr).toContain('line 7 is wrong\nThe engine could not be built.')
    expect(build()).toMatchObject({ was: 'stale', status: 1 })
  })
})
