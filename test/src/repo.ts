/** Small git repositories to work on: the same seed gives the same files and the same commit ids. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const WORDS = 'baton relay lap track runner hand field start finish stride lane pace breath turn'.split(' ')

/** mulberry32: small, and good enough to make files. Gives numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Git without the settings and hooks of whoever runs the tests, and with a fixed author and date. */
export function git(folder: string, ...args: string[]): string {
  const who = { NAME: 'Ada Fixture', EMAIL: 'ada@example.invalid', DATE: '2026-01-02T03:04:05Z' }
  const identity = Object.entries(who).flatMap(([key, value]) => [
    [`GIT_AUTHOR_${key}`, value],
    [`GIT_COMMITTER_${key}`, value],
  ])
  const env = {
    ...process.env,
    ...Object.fromEntries(identity),
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
  }
  return execFileSync('git', ['-C', folder, ...args], { env, encoding: 'utf8' }).trimEnd()
}

function writeFiles(folder: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

export interface RepoOptions {
  seed?: number
  /** Source files besides README.md. */
  files?: number
  /** More files, by path. */
  extra?: Record<string, string>
}

/** Makes a repository with two commits on branch `main` in an existing empty folder. Gives the id of its HEAD. */
export function makeRepo(folder: string, { seed = 1, files = 6, extra = {} }: RepoOptions = {}): string {
  const random = seeded(seed)
  const words = (count: number): string =>
    Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(' ')

  git(folder, 'init', '--quiet', '--initial-branch=main')
  writeFiles(folder, { 'README.md': `# ${words(2)}\n\n${words(12)}\n`, '.gitignore': 'ignored/\n' })
  git(folder, 'add', '--all')
  git(folder, 'commit', '--quiet', '--no-gpg-sign', '-m', 'Begin')

  const sources = Array.from({ length: files }, (_, at) => [
    `src/${at % 2 === 0 ? '' : 'deep/'}file-${at}.txt`,
    Array.from({ length: 3 + Math.floor(random() * 20) }, () => `${words(6)}\n`).join(''),
  ])
  writeFiles(folder, { ...(Object.fromEntries(sources) as Record<string, string>), ...extra })
  git(folder, 'add', '--all')
  git(folder, 'commit', '--quiet', '--no-gpg-sign', '-m', 'Add sources')
  return git(folder, 'rev-parse', 'HEAD')
}

/** Of files beyond this only the size is compared. */
const HASHED_BYTES_MAX = 2 ** 29

/**
 * What is in a work tree, whether git knows it or not: path → mode and hash; an empty folder → `empty`. Equal trees give equal
 * objects. A name that is not UTF-8 stands there in hexadecimal.
 */
export function treeOf(folder: string): Record<string, string> {
  const tree: Record<string, string> = {}
  const walk = (at: Buffer, prefix: string): boolean => {
    const names = readdirSync(at, { encoding: 'buffer' }).filter((name) => name.toString() !== '.git')
    for (const name of names.toSorted((a, b) => Buffer.compare(a, b))) {
      const text = name.toString('utf8')
      const shown = prefix + (Buffer.from(text).equals(name) ? text : `0x${name.toString('hex')}`)
      const path = Buffer.concat([at, Buffer.from('/'), name])
      const stat = lstatSync(path)
      if (stat.isDirectory()) {
        if (walk(path, `${shown}/`)) tree[`${shown}/`] = 'empty'
        continue
      }
      const mode = (stat.mode & 0o120111).toString(8)
      if (stat.size > HASHED_BYTES_MAX) tree[shown] = `${mode} ${stat.size} bytes`
      else {
        const content = stat.isSymbolicLink() ? readlinkSync(path) : readFileSync(path)
        tree[shown] = `${mode} ${createHash('sha256').update(content).digest('hex')}`
      }
    }
    return names.length === 0
  }
  walk(Buffer.from(folder), '')
  return tree
}
