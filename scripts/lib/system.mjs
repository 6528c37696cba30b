/** Programs of the operating system: found, else installed from Debian's packages, else asked for in one line. */
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Refusal, step } from './progress.mjs'
import { run } from './process.mjs'

/** Debian's package of a program, where it is not named like it. Several words: what the program needs besides. */
const PACKAGES = /** @type {Record<string, string>} */ ({
  bwrap: 'bubblewrap',
  // Tests have a login manager of their own on a bus of their own.
  'dbus-daemon': 'dbus-daemon python3-gi',
  'systemd-inhibit': 'systemd',
  'qemu-aarch64': 'qemu-user libc6-arm64-cross libstdc++6-arm64-cross libatomic1-arm64-cross',
})

/** A file without which the program is of no use. */
const NEEDED = /** @type {Record<string, string>} */ ({
  'dbus-daemon': '/usr/lib/python3/dist-packages/gi/__init__.py',
  'qemu-aarch64': '/usr/aarch64-linux-gnu/lib/libatomic.so.1',
})

/** @param {string} program */
function isMissing(program) {
  const file = NEEDED[program]
  return !onPath(program) || (file !== undefined && !existsSync(file))
}

/** @param {string} program */
function onPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** How to become root: `[]` when we are, `['sudo', '-n']` when that needs no password, else undefined. */
async function rootPrefix() {
  if (process.getuid?.() === 0) return []
  const { code } = await run('sudo', ['-n', 'true'], { capture: true })
  return code === 0 ? ['sudo', '-n'] : undefined
}

/**
 * Makes sure that programs are there.
 *
 * @param {string[]} programs
 * @throws {Refusal} with the one command that a person has to run
 */
export async function ensurePrograms(programs) {
  const missing = programs.filter(isMissing)
  if (missing.length === 0) return
  const names = missing.join(' and ')
  if (!onPath('apt-get')) {
    throw new Refusal(
      `${names} not found, and this is not Debian. Install with your package manager, e.g.: ${suggestion(missing)}`,
    )
  }
  const packages = missing.flatMap((program) => (PACKAGES[program] ?? program).split(' '))
  const command = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(' ')}`
  const asRoot = await rootPrefix()
  if (asRoot === undefined) {
    throw new Refusal(`${names} not found, and installing needs root. Run: sudo sh -c '${command}'`)
  }

  await step(`Installing ${names} from Debian's packages`, async () => {
    const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120', '-o', 'Acquire::Retries=3']
    for (const args of [
      ['update', ...options],
      ['install', '-y', '--no-install-recommends', ...options, ...packages],
    ]) {
      const [program, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args]
      const { code, output } = await run(/** @type {string} */ (program), rest, { capture: true })
      if (code !== 0) {
        const reason = output.trim().split('\n').slice(-4).join('\n')
        throw new Refusal(`${reason}\napt-get failed. Run it by hand to see why: ${command}`)
      }
    }
    if (missing.includes('redis-server')) await stopService(asRoot)
  })
  const still = missing.filter(isMissing)
  if (still.length > 0)
    throw new Refusal(`${still.join(' and ')} still not found after installing. Is it on PATH?`)
}

/**
 * Debian starts a Redis on port 6379 when it installs the package, and again at every boot. We only want the program: ours
 * listens on a socket in the data folder. This package was not here a minute ago, so nobody else relies on the service.
 *
 * @param {string[]} asRoot
 */
async function stopService(asRoot) {
  const commands = existsSync('/run/systemd/system')
    ? [['systemctl', 'disable', '--now', 'redis-server']]
    : [
        ['service', 'redis-server', 'stop'],
        ['update-rc.d', 'redis-server', 'disable'],
      ]
  for (const command of commands) {
    const [program, ...rest] = [...asRoot, ...command]
    await run(/** @type {string} */ (program), rest, { capture: true })
  }
}

/** @param {string[]} programs */
function suggestion(programs) {
  if (onPath('brew'))
    return `brew install ${programs.map((name) => (name === 'redis-server' ? 'redis' : name)).join(' ')}`
  const packages = programs.map((name) => (name === 'redis-server' ? 'redis' : name)).join(' ')
  if (onPath('dnf')) return `sudo dnf install ${packages}`
  if (onPath('pacman')) return `sudo pacman -S ${packages}`
  if (onPath('apk')) return `apk add ${packages}`
  return `redis (for redis-server)${programs.includes('chromium') ? ', chromium' : ''}`
}
