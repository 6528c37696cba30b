/** The agent of a new session: a built-in one by its name, or a TypeScript file, bundled with all that it imports. */
import { readdir, readFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { deflateRawSync } from 'node:zlib'
import { BatonError } from '@baton/shared/errors.ts'
import { GuestHarness } from '../vm/guest-harness.ts'
import { meant } from '../similar.ts'

export interface ChosenAgent {
  name: string
  /** As a session stores it, deflated; absent: runners have it. */
  bundle?: Uint8Array
}

const BUILT_IN = /^[a-z][a-z0-9-]*$/

/** Throws BatonError `agent-invalid` with the reason why a file can't be bundled, or for a name that is not there. */
export async function chooseAgent(text: string): Promise<ChosenAgent> {
  if (BUILT_IN.test(text)) {
    const known = await builtIn()
    if (known && !known.includes(text)) {
      const there = `No agent named ${text} is built in; there is ${known.join(', ')}. A file: ./${text}.ts`
      throw new BatonError('agent-invalid', `(${there})${meant(text, known)}`)
    }
    return { name: text }
  }
  const { bundleAgent, BundleError } = await import('@baton/guest/bundle.ts')
  try {
    const bundle = await bundleAgent(text)
    await tryOut(bundle)
    return { name: basename(text, extname(text)), bundle: deflateRawSync(bundle, { level: 9 }) }
  } catch (cause) {
    if (cause instanceof BundleError) throw new BatonError('agent-invalid', `(${cause.message})`, { cause })
    throw cause
  }
}

/** Names of the agents that come with Baton; undefined where none is built, and other machines may have them. */
async function builtIn(): Promise<string[] | undefined> {
  const files = await readdir(AGENTS).catch(() => [])
  const names = files.filter((file) => extname(file) === '.js').map((file) => basename(file, '.js'))
  return names.length === 0 ? undefined : names.toSorted()
}

const AGENTS = fileURLToPath(new URL('../../../guest/dist/agents/', import.meta.url))
const ENGINE = fileURLToPath(new URL('../../../guest/dist/engine.wasm', import.meta.url))

/** Loads it once as a runner would: what goes wrong then is better told here. */
async function tryOut(bundle: Uint8Array): Promise<void> {
  const engine = await readFile(ENGINE).catch(() => undefined)
  // A machine without an engine can still start sessions elsewhere.
  if (!engine) return
  const harness = new GuestHarness({ engine, bundle })
  try {
    await harness.open()
  } finally {
    await harness.close()
  }
}
