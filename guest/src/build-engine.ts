/**
 * Builds the engine: QuickJS as a program that can be stopped anywhere.
 *
 *     quickjs.wasm → loop checks (loops.ts) → Asyncify → one fast body a function (specialise.ts)
 *                  → one copy of the code that saves frames (save.ts) → engine.wasm
 *
 * Run directly it writes guest/dist; the stamp in engine.json makes a second run a no-op.
 */
import binaryen from 'binaryen'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { instrumentLoops, interruptImport } from './engine/loops.ts'
import { keepExports } from './engine/keep-exports.ts'
import { limitMemory } from './engine/limit-memory.ts'
import { refuseUnsupported } from './engine/refuse.ts'
import { shareSaving } from './engine/save.ts'
import { specialise } from './engine/specialise.ts'
import { functions, type Module } from './engine/walk.ts'

/** Version of what host and engine assume of each other. A snapshot of another version is refused. */
export const abi = 1

/** Pages of 64 KiB. The stack of a guest at QuickJS' stack limit takes about a quarter of it when unwound. */
const stackPages = 64
/** The most memory that any guest can have, whatever its own limit: 512 MiB. */
const memoryPagesMax = 8192

/** What engine.json says. */
export interface EngineInfo {
  abi: number
  /** Hex SHA-256 of engine.wasm. */
  hash: string
  bytes: number
  source: { package: string; version: string; hash: string; bytes: number }
  loops: { checked: number; stripMined: number }
  functions: { split: number; left: number }
  /** Exported mutable globals: with memory and stack they are all of an instance's state. */
  globals: string[]
  /** Of the inputs and of this builder. */
  stamp: string
}

const here = dirname(fileURLToPath(import.meta.url))
const dist = join(here, '..', 'dist')

/**
 * Makes engine.wasm from the untouched module. Same input, same bytes.
 * Throws an Error that names the function when the module uses what Asyncify can't handle.
 */
export function instrument(
  source: Uint8Array,
  progress: (step: string) => void = () => {},
): {
  engine: Uint8Array<ArrayBuffer>
  info: Pick<EngineInfo, 'loops' | 'functions' | 'globals'>
} {
  const module = binaryen.readBinary(source)
  try {
    module.setFeatures(module.getFeatures() | binaryen.Features.MultiMemory)
    refuseUnsupported(module)
    keepExports(module)
    progress('loop checks')
    const loops = instrumentLoops(module)
    progress('asyncify')
    runAsyncify(module)
    progress('fast bodies')
    const split = specialise(module)
    const fast = functions(module).filter(({ name }) => name.endsWith('$fast'))
    for (const [i, { ref }] of fast.entries()) {
      if (i % 400 === 0) progress(`optimizing ${Math.round((100 * i) / fast.length)} %`)
      module.optimizeFunction(ref)
    }
    shareSaving(module, functions(module))
    progress('writing')
    module.addMemoryExport('asyncify_memory', 'asyncify_memory')
    const globals = exportGlobals(module)
    if (!module.validate()) throw new Error('the instrumented module is not valid')
    const engine = limitMemory(module.emitBinary(), memoryPagesMax)
    if (!WebAssembly.validate(engine)) throw new Error('the emitted engine is not valid')
    return { engine, info: { loops, functions: { split: split.specialised, left: split.left }, globals } }
  } finally {
    module.dispose()
  }
}

function runAsyncify(module: Module): void {
  binaryen.setOptimizeLevel(3)
  binaryen.setShrinkLevel(0)
  binaryen.setPassArgument(
    'asyncify-imports',
    `${interruptImport.module}.${interruptImport.base},env.host_call`,
  )
  binaryen.setPassArgument('asyncify-in-secondary-memory', '1')
  binaryen.setPassArgument('asyncify-secondary-memory-size', String(stackPages))
  module.runPasses(['asyncify'])
  binaryen.clearPassArguments()
}

function exportGlobals(module: Module): string[] {
  const exported = new Map<string, string>()
  for (let i = 0; i < module.getNumExports(); i++) {
    const { kind, name, value } = binaryen.getExportInfo(module.getExportByIndex(i))
    if (kind === binaryen.ExternalGlobal) exported.set(value, name)
  }
  const names: string[] = []
  for (let i = 0; i < module.getNumGlobals(); i++) {
    const { name, mutable } = binaryen.getGlobalInfo(module.getGlobalByIndex(i))
    if (!mutable) continue
    if (!exported.has(name)) module.addGlobalExport(name, name)
    names.push(exported.get(name) ?? name)
  }
  return names
}

/** Builds guest/dist/engine.wasm and engine.json unless they are up to date. Returns what engine.json says. */
export function buildEngine(progress: (line: string) => void = () => {}): EngineInfo {
  const require = createRequire(import.meta.url)
  const sourcePath = require.resolve('quickjs-wasi/quickjs.wasm')
  const { version } = JSON.parse(readFileSync(join(dirname(sourcePath), 'package.json'), 'utf8')) as {
    version: string
  }
  const source = readFileSync(sourcePath)
  const stamp = stampOf(source)
  const infoPath = join(dist, 'engine.json')
  const enginePath = join(dist, 'engine.wasm')
  const built = readBuilt(infoPath, enginePath)
  if (built?.stamp === stamp) return built

  progress('engine: building, about half a minute')
  const { engine, info } = instrument(source, (step) => progress(`engine: ${step}`))
  const made: EngineInfo = {
    abi,
    hash: sha256(engine),
    bytes: engine.length,
    source: { package: 'quickjs-wasi', version, hash: sha256(source), bytes: source.length },
    ...info,
    stamp,
  }
  mkdirSync(dist, { recursive: true })
  replace(enginePath, engine)
  replace(infoPath, JSON.stringify(made, null, 2) + '\n')
  progress(`engine: ${(engine.length / 1e6).toFixed(2)} MB, ${made.hash.slice(0, 12)}`)
  return made
}

function readBuilt(infoPath: string, enginePath: string): EngineInfo | undefined {
  try {
    const info = JSON.parse(readFileSync(infoPath, 'utf8')) as EngineInfo
    return sha256(readFileSync(enginePath)) === info.hash ? info : undefined
  } catch {
    return undefined
  }
}

function replace(path: string, content: Uint8Array | string): void {
  const temporary = `${path}.${process.pid}.tmp`
  writeFileSync(temporary, content)
  renameSync(temporary, path)
}

function stampOf(source: Uint8Array): string {
  const hash = createHash('sha256').update(source)
  hash.update(readFileSync(createRequire(import.meta.url).resolve('binaryen/package.json')))
  hash.update(readFileSync(fileURLToPath(import.meta.url)))
  for (const file of readdirSync(join(here, 'engine')).sort())
    hash.update(readFileSync(join(here, 'engine', file)))
  return hash.digest('hex')
}

const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

if (process.argv[1] === fileURLToPath(import.meta.url)) buildEngine((line) => console.log(line))
