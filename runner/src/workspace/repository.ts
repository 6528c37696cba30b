/** A git repository as the runner finds it: where its objects and refs are, and a few questions about commits. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { ObjectFormat } from './bundle.ts'
import { failure, type GitProgram, type GitResult } from './git-program.ts'

export interface Repository {
  /** The folder that holds objects and refs: `.git` of an ordinary clone, the repository itself when bare. Absolute. */
  common: string
  objects: string
  format: ObjectFormat
  /** The person's work tree; absent in a bare repository. */
  top?: string
  /** HEAD of that work tree; absent when there is no commit. */
  head?: string
}

/** Throws BatonError `workspace-missing`, `workspace-not-git`. A repository without a commit has no `head`. */
export async function findRepository(git: GitProgram, path: string): Promise<Repository> {
  if (!existsSync(path)) throw new BatonError('workspace-missing', path)
  const args = ['rev-parse', '--show-object-format', '--git-common-dir']
  const ask = (more: string[]): Promise<GitResult> => git.run([...args, ...more], { cwd: path })
  // All at once in the ordinary case; one by one when something is lacking.
  const whole = await ask(['--show-toplevel', 'HEAD^{commit}'])
  const result = whole.code === 0 ? whole : await ask([])
  if (result.code !== 0) {
    if (/not a git repository|not a directory/i.test(result.stderr)) {
      throw new BatonError('workspace-not-git', path)
    }
    throw failure(args, result)
  }
  const [format, common = '', ...rest] = result.stdout.toString('utf8').split('\n')
  const repository: Repository = {
    common: resolve(path, common),
    objects: resolve(path, common, 'objects'),
    format: format === 'sha256' ? 'sha256' : 'sha1',
  }
  if (whole.code === 0) return { ...repository, top: rest[0] ?? '', head: rest[1] ?? '' }
  const [top, head] = await Promise.all([
    git.run(['rev-parse', '--show-toplevel'], { cwd: path }),
    git.run(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], { cwd: path }),
  ])
  if (top.code === 0) repository.top = top.stdout.toString('utf8').replace(/\n$/, '')
  if (head.code === 0) repository.head = head.stdout.toString('utf8').trim()
  return repository
}

/**
 * The repository that a linked work tree belongs to, and its administrative folder there; undefined when it is none (any more).
 * Reads files only: a session that comes back should not wait for processes.
 */
export async function findLinked(
  root: string,
): Promise<{ repository: Repository; admin: string } | undefined> {
  try {
    const link = /^gitdir: (.+)$/m.exec(await readFile(join(root, '.git'), 'utf8'))?.[1]
    if (link === undefined) return undefined
    const admin = resolve(root, link)
    const common = resolve(admin, (await readFile(join(admin, 'commondir'), 'utf8')).trim())
    const settings = await readFile(join(common, 'config'), 'utf8')
    const format = /^\s*objectformat\s*=\s*sha256/im.test(settings) ? 'sha256' : 'sha1'
    return { repository: { common, objects: join(common, 'objects'), format }, admin }
  } catch {
    return undefined
  }
}

export async function hasCommit(git: GitProgram, repository: Repository, oid: string): Promise<boolean> {
  const result = await git.run(['cat-file', '-e', `${oid}^{commit}`], { cwd: repository.common })
  return result.code === 0
}

export async function isAncestor(
  git: GitProgram,
  repository: Repository,
  older: string,
  newer: string,
): Promise<boolean> {
  if (older === newer) return true
  const args = ['merge-base', '--is-ancestor', older, newer]
  return (await git.run(args, { cwd: repository.common })).code === 0
}

/** Object id that a ref points to, or undefined. */
export async function readRef(
  git: GitProgram,
  repository: Repository,
  ref: string,
): Promise<string | undefined> {
  const result = await git.run(['rev-parse', '--verify', '--quiet', ref], { cwd: repository.common })
  return result.code === 0 ? result.stdout.toString('utf8').trim() : undefined
}
