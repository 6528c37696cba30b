/** Repositories and machines for the tests of workspaces. */
import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, expect } from 'vitest'
import type { GitWorkspace } from '../src/workspace/git-workspace.ts'
import { openWorkspace, type OpenOptions } from '../src/workspace/open.ts'
import { packOf } from '../src/workspace/pack-file.ts'
import { restoreWorkspace, type RestoreOptions } from '../src/workspace/restore.ts'
import type { WorkspaceSettings } from '../src/workspace/settings.ts'
import { tipOf, type Checkpoint, type Workspace } from '../src/workspace/workspace.ts'

const made: string[] = []
afterAll(() => {
  for (const path of made) rmSync(path, { recursive: true, force: true })
})

export const SID = 'k3J_sessionOne-000001'
export const SHORT = SID.slice(0, 8)
/** Another session. */
export const OTHER = 'z9Q_sessionTwo-000002'

export const inPlace: WorkspaceSettings = { place: 'in-place', carry: [] }
export const carrying = (...carry: string[]): WorkspaceSettings => ({ place: 'worktree', carry })

export const withCode = (code: string): unknown => expect.objectContaining({ name: 'BatonError', code })

export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'baton-workspace-'))
  made.push(path)
  return path
}

/** Runs the person's own git. */
export function git(cwd: string, ...args: string[]): string {
  const identity = ['-c', 'user.name=Person', '-c', 'user.email=person@localhost']
  return execFileSync('git', [...identity, '-c', 'init.defaultBranch=main', ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  }).toString()
}

export function put(root: string, files: Record<string, string | Uint8Array>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

/** A repository with one commit of these files. */
export function repository(
  files: Record<string, string | Uint8Array> = { 'a.txt': 'a\n' },
  ...init: string[]
): string {
  const path = join(folder(), 'project')
  mkdirSync(path)
  git(path, 'init', '--quiet', ...init)
  put(path, files)
  git(path, 'add', '-A')
  git(path, 'commit', '--quiet', '--no-gpg-sign', '-m', 'start')
  return path
}

/** Every file below a folder except .git: path (as latin1) → kind, executable bit and bytes. */
export function filesOf(root: string): Record<string, string> {
  const found: Record<string, string> = {}
  const top = Buffer.from(root).toString('latin1')
  const walk = (at: string): void => {
    for (const name of readdirSync(Buffer.from(`${top}/${at}`, 'latin1'), { encoding: 'latin1' })) {
      if (name === '.git') continue
      const path = at === '' ? name : `${at}/${name}`
      const full = Buffer.from(`${top}/${path}`, 'latin1')
      const info = lstatSync(full)
      if (info.isDirectory()) walk(path)
      else if (info.isSymbolicLink()) found[path] = `link ${readlinkSync(full)}`
      else found[path] = `${info.mode & 0o100 ? 'x' : '-'} ${readFileSync(full).toString('hex')}`
    }
  }
  walk('')
  return found
}

export const status = (root: string): string => git(root, 'status', '--porcelain', '-uall', '-b')

/** What git says about a work tree: all that should be the same after a move. */
export function state(root: string): Record<string, string> {
  const ask = (...args: string[]): string => git(root, ...args)
  return {
    status: ask('status', '--porcelain=v2', '--branch', '--untracked-files=all').replace(
      /^# branch.oid.*$/m,
      '',
    ),
    staged: ask('diff', '--cached', '--raw', '--no-abbrev'),
    unmerged: ask('ls-files', '-u'),
    unstaged: ask('diff'),
    says: ask('status').replace(/^(HEAD detached.*|Not currently on any branch.)$/m, ''),
  }
}

/** Takes checkpoints as the session loop does, and keeps every pack. */
export class Courier {
  readonly packs: Uint8Array[] = []
  #last: Checkpoint | undefined

  get last(): Checkpoint {
    if (!this.#last) throw new Error('no checkpoint was taken')
    return this.#last
  }

  async take(workspace: Workspace): Promise<Checkpoint> {
    const checkpoint = await workspace.checkpoint()
    if (!checkpoint) throw new Error('nothing changed since the last checkpoint')
    const before = this.#last && tipOf(this.#last)
    this.packs.push(await bytesOf(await workspace.pack(tipOf(checkpoint), before, Infinity)))
    this.#last = checkpoint
    await workspace.confirm?.(checkpoint)
    return checkpoint
  }
}

export async function bytesOf(pack: Awaited<ReturnType<Workspace['pack']>>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of pack.pieces(1 << 16)) pieces.push(piece)
  await pack.discard()
  return Buffer.concat(pieces)
}

type Opening = Omit<OpenOptions, 'folder'> & { repository: string }

export async function openGitWorkspace({ repository: clone, ...options }: Opening): Promise<GitWorkspace> {
  return (await openWorkspace({ folder: clone, ...options })).workspace
}

type Restoring = Omit<RestoreOptions, 'folder' | 'packs'> & { repository?: string; packs: Uint8Array[] }

/** `kept`: the branch on which changes found here are kept. */
export async function restoreGitWorkspace({
  repository: clone,
  packs,
  ...options
}: Restoring): Promise<GitWorkspace & { kept: string | undefined; notices: string[] }> {
  const folder = clone === undefined ? {} : { folder: clone }
  const { workspace, notices } = await restoreWorkspace({ ...options, ...folder, packs: packs.map(packOf) })
  const kept = /are kept on branch (\S+):/.exec(notices.join('\n'))?.[1]
  return Object.assign(workspace, { kept, notices })
}

export interface Move {
  source: GitWorkspace
  target: GitWorkspace
  notices: string[]
}

/** Lets `work` happen in a session's work tree, then moves the session to a machine without a clone, or with `clone`. */
export async function move(person: string, work: (root: string) => void, clone?: string): Promise<Move> {
  const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
  const courier = new Courier()
  await courier.take(source)
  work(source.root)
  const checkpoint = await courier.take(source)
  const target = await restoreGitWorkspace({
    ...{ data: folder(), sid: SID, packs: courier.packs, checkpoint },
    ...(clone === undefined ? {} : { repository: clone }),
  })
  // What had to get another name is new.
  if (target.notices.length === 0) expect(await target.checkpoint()).toBeUndefined()
  return { source, target, notices: target.notices }
}

/** Two branches that change one line each in their own way. */

/**
 * A session that was begun at home, in `person`, and is away now, on a machine without a clone. `home` brings it back with what the
 * courier has taken since.
 */
export async function goneAway(person: string, settings?: WorkspaceSettings) {
  const data = folder()
  const source = await openGitWorkspace({
    ...{ repository: person, data, sid: SID },
    ...(settings === undefined ? {} : { settings }),
  })
  const courier = new Courier()
  await courier.take(source)
  await source.close()
  const restored = (options: Pick<Restoring, 'repository' | 'data'>) =>
    restoreGitWorkspace({ ...options, sid: SID, packs: courier.packs, checkpoint: courier.last })
  const away = await restored({ data: folder() })
  return { data, source, courier, away, home: () => restored({ repository: person, data }) }
}
