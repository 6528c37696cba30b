/** Arrows between folders: who may import whom. They point one way, so that each folder can be read without the ones above it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, withoutComments, WORKSPACES } from './sources.ts'
import type { Source, Workspace } from './sources.ts'

/** What the `src` of each workspace may import of the others. `type`: only types, which vanish before running. */
const ALLOWED: Record<Workspace, Partial<Record<Workspace, 'all' | 'type'>>> = {
  shared: {},
  guest: { shared: 'type' },
  relay: { shared: 'all' },
  runner: { shared: 'all', guest: 'all' },
  client: { shared: 'all' },
  test: { shared: 'all', guest: 'all', relay: 'all', runner: 'all', client: 'all' },
}

/** The command line is where the parts are put together. */
const COMMAND_LINE = /^runner\/src\/cli(\.ts|\/)/

/** Code that also runs in a browser. */
const NO_NODE: Workspace[] = ['shared', 'client']

/** The module that agents import is made by the bundler. */
const MADE_BY_BUNDLER = /^(baton|virtual:.*)$/

export interface Import {
  from: string
  typeOnly: boolean
}

/** Imports, re-exports and dynamic imports of one file. */
export function importsOf(text: string): Import[] {
  const code = withoutComments(text)
  const fixed = code.matchAll(
    /^\s*(?:import|export)\s+(type\s)?(?:[\w*{}\s,$]+?\sfrom\s+)?['"]([^'"\n]+)['"]/gm,
  )
  const dynamic = code.matchAll(/\bimport\(\s*['"]([^'"\n]+)['"]\s*\)/g)
  return [
    ...[...fixed].map(([, type, from]) => ({ from: from ?? '', typeOnly: type !== undefined })),
    ...[...dynamic].map(([, from]) => ({ from: from ?? '', typeOnly: false })),
  ]
}

function packageOf(from: string): string {
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Says what is wrong with one import, or nothing. */
function fault(
  { path, workspace, folder }: Source,
  { from, typeOnly }: Import,
  declared: Set<string>,
): string | undefined {
  if (from.startsWith('.')) {
    const target = new URL(from, `file:///${path}`).pathname.slice(1)
    const [other = ''] = target.split('/')
    if (other === workspace || (other === 'scripts' && path.startsWith('test/test/'))) return undefined
    const isWorkspace = (WORKSPACES as readonly string[]).includes(other)
    return isWorkspace
      ? `imports ${from}; write @baton/${other}/…`
      : `imports ${from}, outside the workspaces`
  }
  // What tests put together does not travel with the product.
  if (folder !== 'src') return undefined
  if (from.startsWith('node:')) {
    return NO_NODE.includes(workspace) ? `imports ${from}, but runs in a browser too` : undefined
  }
  if (MADE_BY_BUNDLER.test(from)) return undefined

  const name = packageOf(from)
  const other = name.replace(/^@baton\//, '') as Workspace
  if (name.startsWith('@baton/') && other !== workspace) {
    const allowed = COMMAND_LINE.test(path) && other === 'relay' ? 'all' : ALLOWED[workspace][other]
    if (allowed === undefined) return `imports ${from}; ${workspace} must not know ${other}`
    if (allowed === 'type' && !typeOnly)
      return `imports ${from}; ${workspace} may import only types of ${other}`
  }
  if (!typeOnly && !declared.has(name))
    return `imports ${from}, which ${workspace}/package.json does not name`
  return undefined
}

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

function declaredIn(workspace: Workspace): Set<string> {
  const manifest = JSON.parse(readFileSync(join(ROOT, workspace, 'package.json'), 'utf8')) as Manifest
  const { dependencies = {}, devDependencies = {} } = manifest
  return new Set([`@baton/${workspace}`, ...Object.keys(dependencies), ...Object.keys(devDependencies)])
}

/** One line for each import that points the wrong way, or at a package that is not declared. */
export function arrowFaults(
  sources: Source[],
  declared: (workspace: Workspace) => Set<string> = declaredIn,
): string[] {
  const names = new Map(WORKSPACES.map((workspace) => [workspace, declared(workspace)]))
  return sources.flatMap((source) =>
    importsOf(source.text).flatMap((entry) => {
      const wrong = fault(source, entry, names.get(source.workspace) ?? new Set())
      return wrong === undefined ? [] : [`${source.path} ${wrong}.`]
    }),
  )
}
