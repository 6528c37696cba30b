/**
 * Imports a config and what it imports, as files that are known by their hash. Where an agent can write them (config/trust.ts) a file
 * that differs from the one that a person saw ends the import before anything of it runs.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'

/** SHA-256 by path. */
export type Files = Readonly<Record<string, string>>

type Source = string | ArrayBuffer | NodeJS.TypedArray

interface Import {
  version: string
  trusted: Files | undefined
}

/** Modules of configs, by address. */
const imports = new Map<string, Import>()
const edges = new Map<string, Set<string>>()

/**
 * Imports a file. `ours`: the module that stands for `baton/config`. `trusted`: the only files that may run. Throws BatonError
 * `config-changed`, and what the import throws.
 */
export async function importFiles(
  named: string,
  ours: string,
  trusted?: Files,
): Promise<{ value: unknown; files: Files }> {
  hook(ours)
  const file = realpathSync(named)
  const url = pathToFileURL(file)
  // Modules are kept for good by their address; a changed file has to have another.
  const version = `${statSync(file).mtimeMs}-${trusted ? sha256Hex(JSON.stringify(trusted)).slice(0, 16) : ''}`
  url.searchParams.set('changed', version)
  imports.set(url.href, { version, trusted })
  check(file, trusted)
  const module = (await import(/* @vite-ignore */ url.href)) as { default?: unknown }
  return { value: module.default, files: filesFrom(url.href) }
}

function filesFrom(root: string): Files {
  const files: Record<string, string> = {}
  const seen = new Set([root])
  // Grows while it is walked.
  for (const url of seen) {
    const path = fileURLToPath(url)
    files[path] = hashOf(path)
    for (const child of edges.get(url) ?? []) seen.add(child)
  }
  return files
}

let hooked = false

function hook(ours: string): void {
  if (hooked) return
  hooked = true
  registerHooks({
    // Lets a config import `baton/config` although nothing of that name is installed beside it.
    resolve: (specifier, context, next) => {
      if (specifier === 'baton/config') return { url: ours, shortCircuit: true }
      const found = next(specifier, context)
      const parent = context.parentURL
      const own = parent === undefined ? undefined : imports.get(parent)
      if (!own || parent === undefined || !found.url.startsWith('file:')) return found
      const path = fileURLToPath(found.url)
      check(path, own.trusted)
      const url = new URL(found.url)
      // Read anew with each version of the config, but for packages, and what is required: that has no query.
      if (context.conditions.includes('import') && !path.includes('/node_modules/'))
        url.searchParams.set('changed', own.version)
      imports.set(url.href, own)
      edges.set(parent, (edges.get(parent) ?? new Set()).add(url.href))
      return { ...found, url: url.href }
    },
    load: (url, context, next) => {
      const loaded = next(url, context)
      const own = imports.get(url)
      // What is run, whatever was put in its place since.
      if (own) check(fileURLToPath(url), own.trusted, loaded.source ?? undefined)
      return loaded
    },
  })
}

function check(path: string, trusted: Files | undefined, source?: Source): void {
  if (!trusted || trusted[path] === hashOf(path, source)) return
  throw new BatonError('config-changed', `(${path})`)
}

function hashOf(path: string, source: Source = readFileSync(path)): string {
  if (typeof source === 'string' || source instanceof Uint8Array) return sha256Hex(source)
  return sha256Hex(
    ArrayBuffer.isView(source)
      ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
      : new Uint8Array(source),
  )
}
