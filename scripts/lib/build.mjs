/**
 * Built artifacts. Each is made again only when the content of its inputs changed: the hash of all input files stands in
 * build/NAME.inputs. Relay and runner have no build step; Node runs their TypeScript as it is.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { Refusal, say, step } from './progress.mjs'
import { node24, run } from './process.mjs'
import { root } from './root.mjs'

/**
 * @typedef {object} Artifact
 * @property {string} what shown while it is built
 * @property {string[]} inputs files and folders, relative to the repository
 * @property {string[]} packages npm packages whose version matters
 * @property {string[]} outputs exist when built
 * @property {string[]} command arguments of Node 24
 * @property {string} [cwd]
 */

/** @type {Record<string, Artifact>} In the order in which they are built. */
export const ARTIFACTS = {
  engine: {
    what: 'Building the engine (once; one to three minutes)',
    inputs: ['guest/src/build-engine.ts', 'guest/src/engine'],
    packages: ['quickjs-wasi', 'binaryen'],
    outputs: ['guest/dist/engine.wasm', 'guest/dist/engine.json'],
    command: ['guest/src/build-engine.ts'],
  },
  agents: {
    what: 'Bundling the agents',
    inputs: ['guest/src/build-agents.ts', 'guest/src/bundle.ts', 'guest/src/agents', 'guest/src/sdk'],
    packages: ['rolldown'],
    outputs: ['guest/dist/agents/coder.js', 'guest/dist/agents/toy.js'],
    command: ['guest/src/build-agents.ts'],
  },
  client: {
    what: 'Building the client',
    inputs: [
      'client/src',
      'client/public',
      'client/index.html',
      'client/vite.config.ts',
      'client/package.json',
      'shared/src',
    ],
    packages: [
      'vite',
      'vite-plugin-pwa',
      '@vitejs/plugin-react',
      'react',
      'react-dom',
      'marked',
      'idb',
      'uqr',
      'virtua',
      'valibot',
    ],
    outputs: ['client/dist/index.html', 'client/dist/sw.js'],
    command: ['../node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn'],
    cwd: 'client',
  },
}

/**
 * @param {string} path
 * @returns {string[]} files below, sorted
 */
function filesBelow(path) {
  const full = join(root, path)
  if (!existsSync(full)) return []
  if (!statSync(full).isDirectory()) return [path]
  return readdirSync(full)
    .toSorted()
    .flatMap((name) => filesBelow(join(path, name)))
}

/** @param {Artifact} artifact */
function inputsHash({ inputs, packages, command }) {
  const hash = createHash('sha256').update(JSON.stringify(command))
  for (const file of inputs.flatMap(filesBelow)) {
    hash.update(`\0${file}\0`).update(readFileSync(join(root, file)))
  }
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  for (const name of packages) hash.update(`\0${name}@${lock[`node_modules/${name}`]?.version}`)
  return hash.digest('hex')
}

/** @param {Artifact} artifact */
const isBuilt = ({ outputs }) => outputs.every((path) => existsSync(join(root, path)))

/** @param {string} name */
const stampOf = (name) => join(root, 'build', `${name}.inputs`)

/**
 * @param {string} name of ARTIFACTS
 * @returns {'missing' | 'stale' | 'current'}
 */
export function stateOf(name) {
  const artifact = /** @type {Artifact} */ (ARTIFACTS[name])
  if (!isBuilt(artifact)) return 'missing'
  const stamp = stampOf(name)
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === inputsHash(artifact) ? 'current' : 'stale'
}

/**
 * Builds what is missing or older than its inputs. Safe to call from several processes at once.
 *
 * @param {string[]} [names] of ARTIFACTS
 * @throws {Refusal} with the compiler's message
 */
export async function ensureBuilt(names = Object.keys(ARTIFACTS)) {
  if (names.every((name) => stateOf(name) === 'current')) return
  const unlock = await lock()
  try {
    for (const name of names) if (stateOf(name) !== 'current') await build(name)
  } finally {
    unlock()
  }
}

/** @param {string} name */
async function build(name) {
  const artifact = /** @type {Artifact} */ (ARTIFACTS[name])
  const stamp = stampOf(name)
  rmSync(stamp, { force: true })
  const inputs = inputsHash(artifact)
  await step(artifact.what, async () => {
    const { code, output } = await run(node24, artifact.command, {
      cwd: join(root, artifact.cwd ?? ''),
      // Whoever asks, a test run too, gets what users get.
      env: { ...process.env, NODE_ENV: 'production' },
      capture: true,
    })
    if (code !== 0 || !isBuilt(artifact)) {
      throw new Refusal(
        `${output.trim()}\nThe ${name} could not be built. Correct what is said above, then run it again.`,
      )
    }
  })
  writeFileSync(stamp, inputs)
}

/**
 * One builder at a time. The lock names its holder's pid, so that a killed builder blocks nobody.
 *
 * @returns {Promise<() => void>} gives the lock back
 */
async function lock() {
  const path = join(root, 'build', 'lock')
  mkdirSync(join(root, 'build'), { recursive: true })
  let told = false
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      return () => rmSync(path, { force: true })
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    if (!holderLives(path)) {
      rmSync(path, { force: true })
      continue
    }
    if (!told) say('Waiting for another build …')
    told = true
    await sleep(200)
  }
}

/** @param {string} path */
function holderLives(path) {
  try {
    const pid = Number(readFileSync(path, 'utf8'))
    // Just created and still empty counts as alive.
    return pid === 0 || process.kill(pid, 0)
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}
