/**
 * Compiled engines and baselines, each made once a process for as long as they are among those used last; baselines are also kept
 * for the next process.
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { Baseline } from './baseline.ts'
import { sha256 } from './codec.ts'
import { KeptBaselines } from './kept-baselines.ts'
import type { Thread } from './thread.ts'
import { threads } from './threads.ts'

export interface Program {
  module: WebAssembly.Module
  baseline: Baseline
  /** Hex SHA-256. */
  engine: string
  bundle: string
}

/** A bundle is loaded in milliseconds; one that takes longer than this never ends. */
const loadDeadlineMs = 20_000

/** A baseline holds some megabytes, and every agent of a person's own is one more. Guests keep what they run on. */
const PROGRAMS_MAX = 16
const MODULES_MAX = 4

const hashes = new WeakMap<Uint8Array, string>()
const modules = new Map<string, Promise<WebAssembly.Module>>()
const programs = new Map<string, Promise<Program>>()
const keptBaselines = new KeptBaselines()

/** Compiles an engine and loads a bundle into it. Throws `snapshot-engine` or `agent-invalid` when one is no good. */
export function loadProgram(engine: Uint8Array, bundle: Uint8Array): Promise<Program> {
  // Starts while the engine is hashed and compiled.
  threads.warmUp()
  const key = `${hashOf(engine)}/${hashOf(bundle)}`
  return once(programs, PROGRAMS_MAX, key, () => load(engine, bundle))
}

async function load(engine: Uint8Array, bundle: Uint8Array): Promise<Program> {
  const origin = { engine: hashOf(engine), bundle: hashOf(bundle) }
  const compiled = once(modules, MODULES_MAX, origin.engine, () => compile(engine))
  // It is awaited below; whatever fails before then is told instead.
  compiled.catch(() => undefined)
  const kept = keptBaselines.read(origin)
  if (kept) return { module: await compiled, baseline: kept, ...origin }
  // In a thread without guests: a bundle runs while it is loaded, and may never end.
  return threads.alone(async (thread) => {
    const module = await compiled
    const baseline = await withDeadline(thread, thread.ask({ op: 'baseline', module, bundle }))
    keptBaselines.keep(origin, baseline)
    return { module, baseline, ...origin }
  })
}

async function withDeadline<T>(thread: Thread, loaded: Promise<T>): Promise<T> {
  let late = false
  const deadline = setTimeout(() => {
    late = true
    void thread.terminate()
  }, loadDeadlineMs)
  try {
    return await loaded
  } catch (cause) {
    if (late) throw new BatonError('agent-invalid', '(its modules never finish loading)', { cause })
    throw cause
  } finally {
    clearTimeout(deadline)
  }
}

async function compile(engine: Uint8Array): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(engine as Uint8Array<ArrayBuffer>)
  } catch (cause) {
    throw new BatonError('snapshot-engine', '(this file is not a Baton engine: it does not compile)', {
      cause,
    })
  }
}

function hashOf(bytes: Uint8Array): string {
  let hash = hashes.get(bytes)
  if (hash === undefined) hashes.set(bytes, (hash = sha256(bytes)))
  return hash
}

/** What was used longest ago makes room. */
export function once<T>(
  cache: Map<string, Promise<T>>,
  max: number,
  key: string,
  make: () => Promise<T>,
): Promise<T> {
  const made = cache.get(key) ?? make()
  const isNew = !cache.delete(key)
  cache.set(key, made)
  if (isNew) {
    const [oldest] = cache.keys()
    if (cache.size > max && oldest !== undefined) cache.delete(oldest)
    made.catch(() => cache.get(key) === made && cache.delete(key))
  }
  return made
}
