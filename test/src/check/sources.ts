/** The repository's own source files, read for checking. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const WORKSPACES = ['shared', 'guest', 'relay', 'runner', 'client', 'test'] as const
export type Workspace = (typeof WORKSPACES)[number]

export interface Source {
  /** Relative to the repository, with slashes. */
  path: string
  workspace: Workspace
  /** `src`, `test`, … */
  folder: string
  text: string
}

export const ROOT = join(import.meta.dirname, '../../..')

const SOURCE = /\.(ts|tsx)$/
const SKIPPED = new Set(['node_modules', 'dist'])

/** Every TypeScript file of every workspace. */
export function readSources(root = ROOT): Source[] {
  return WORKSPACES.flatMap((workspace) => {
    const base = join(root, workspace)
    if (!existsSync(base)) return []
    return readdirSync(base, { recursive: true, encoding: 'utf8' })
      .map((name) => name.replaceAll('\\', '/'))
      .filter((name) => SOURCE.test(name) && !name.split('/').some((part) => SKIPPED.has(part)))
      .toSorted()
      .map((name) => ({
        path: `${workspace}/${name}`,
        workspace,
        folder: name.split('/')[0] ?? '',
        text: readFileSync(join(base, name), 'utf8'),
      }))
  })
}

/** The text without comments, so that what is commented out counts for nothing. Line breaks stay. */
export function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/^[ \t]*\/\/.*$/gm, '')
}
