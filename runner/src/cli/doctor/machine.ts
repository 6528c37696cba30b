/** What doctor looks at on this machine: programs, folders, what sleep and sandbox need. */
import { existsSync } from 'node:fs'
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { size } from '@baton/shared/view/units.ts'
import { ok, printed, problem, warning, type Finding } from './check.ts'

const NODE_MAJOR = 24
const GIT_MINOR = 30
const BUILT = fileURLToPath(new URL('../../../../guest/dist', import.meta.url))
/** Below the first the relay refuses writes; below the second that is near. */
const DISK_LEAST_BYTES = 64 << 20
const DISK_LOW_BYTES = 1 << 30

export async function node(version = process.versions.node): Promise<Finding> {
  const major = Number(version.split('.')[0])
  if (major >= NODE_MAJOR) return ok(version)
  return problem(
    `Node ${version} runs this; ${NODE_MAJOR} is needed.`,
    'Start it by its own command, runner/bin/baton.mjs in its folder: that brings its own Node.',
  )
}

export async function engine(folder = BUILT): Promise<Finding> {
  const missing = ['engine.wasm', 'agents/coder.js'].filter((file) => !existsSync(join(folder, file)))
  if (missing.length === 0) return ok('engine and agents are built')
  return problem(`Not built: ${missing.join(', ')}.`, 'Run: npm run build')
}

export async function git(): Promise<Finding> {
  const said = await printed('git', ['--version'])
  if (said === undefined)
    return problem('git is not installed.', 'Install it: apt-get install git — or from your system.')
  const [, version = '', major = '0', minor = '0'] = /((\d+)\.(\d+)\S*)/.exec(said) ?? []
  if (Number(major) < 2 || (Number(major) === 2 && Number(minor) < GIT_MINOR))
    return problem(`git ${version} is too old; 2.${GIT_MINOR} is needed.`, 'Update git.')
  const [name, email] = await Promise.all([setting('user.name'), setting('user.email')])
  const missing = [...(name ? [] : ['user.name']), ...(email ? [] : ['user.email'])]
  if (missing.length === 0) return ok(`${version}, ${name} <${email}>`)
  return warning(
    `git ${version}; ${missing.join(' and ')} not set: commits fail or carry no name.`,
    'Run: git config --global user.name "…" and git config --global user.email "…"',
  )
}

/** git ends with an error when a setting is not there. */
function setting(name: string): Promise<string | undefined> {
  return printed('git', ['config', '--get', name]).catch(() => undefined)
}

/** `isRelayHere`: whether the relay of this account would run on this machine. */
export async function redis(isRelayHere: boolean, env = process.env): Promise<Finding> {
  if (env['REDIS_URL']) return ok('REDIS_URL is set; the relay says whether it answers')
  const said = await printed('redis-server', ['--version'])
  const version = /v=(\S+)/.exec(said ?? '')?.[1]
  if (version !== undefined) return ok(version)
  const todo = 'Install it: apt-get install redis-server — or set REDIS_URL.'
  if (isRelayHere) return problem('redis-server is not installed; a relay on this machine needs it.', todo)
  return ok('not installed; only a machine with a relay needs it')
}

export async function dataFolder(folder: string): Promise<Finding> {
  if (!existsSync(folder)) return ok(`${folder} is made with the first start`)
  try {
    const probe = await mkdtemp(join(folder, '.doctor-'))
    await writeFile(join(probe, 'file'), 'probe')
    await rm(probe, { recursive: true })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    return problem(
      `${folder} can not be written (${code}).`,
      'Mend its rights, or choose another with --data DIR.',
    )
  }
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  if (free < DISK_LEAST_BYTES)
    return problem(`${folder}: only ${size(free)} free.`, 'Free some space: writes are refused.')
  if (free < DISK_LOW_BYTES)
    return warning(`${folder}: only ${size(free)} free.`, 'Free some space before it runs out.')
  return ok(`${folder}, ${size(free)} free`)
}

/** `inUse`: the relay of this account is on this machine and has the port. */
export async function port(number: number, inUse: boolean): Promise<Finding> {
  const code = await tryPort(number)
  if (code === undefined) return ok(inUse ? `${number} is free, no relay listens there` : `${number} is free`)
  if (inUse) return ok(`${number} is in use, by the relay`)
  return warning(`${number} can not be taken (${code}).`, 'Start the relay with another: --port N')
}

function tryPort(number: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ port: number, host: '127.0.0.1', exclusive: true }, () =>
      server.close(() => resolve(undefined)),
    )
  })
}

export async function sandbox(platform = process.platform): Promise<Finding> {
  if (platform !== 'linux') return ok('there is none on this system; commands run without one')
  const version = await printed('bwrap', ['--version'])
  if (version === undefined)
    return ok('bubblewrap is not installed; needed only when you turn the sandbox on')
  try {
    await printed('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'])
    return ok(`${version} works`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return warning(
      `bubblewrap does not work here (${why}).`,
      'Allow user namespaces, or leave the sandbox off.',
    )
  }
}

/** Whether the lid is noticed. */
export async function sleep(platform = process.platform): Promise<Finding> {
  if (platform === 'darwin') return ok('the lid is watched by ioreg')
  const todo =
    'Before closing the lid: baton handoff. Otherwise the lease runs out and another runner goes on.'
  if (platform !== 'linux') return warning('Sleep is not noticed on this system.', todo)
  try {
    const call = [
      '--system',
      'get-property',
      'org.freedesktop.login1',
      '/org/freedesktop/login1',
      'org.freedesktop.login1.Manager',
      'InhibitDelayMaxUSec',
    ]
    const said = await printed('busctl', call)
    if (said === undefined) return warning('busctl is not installed, so logind was not asked.', todo)
    const seconds = Number(said.split(' ')[1]) / 1e6
    return ok(`logind grants ${seconds} s before sleep`)
  } catch {
    return warning('logind does not answer: closing the lid is not noticed.', todo)
  }
}
