/** The state with which a new session begins in a work tree of its own: what the person sees in theirs. */
import { rm } from 'node:fs/promises'
import { splitPaths } from './byte-paths.ts'
import { carryPatterns, mayCarry } from './carry.ts'
import type { GitProgram } from './git-program.ts'
import { identity } from './identity.ts'
import type { Repository } from './repository.ts'
import type { LeftBehind } from './left.ts'
import { Shadow } from './shadow.ts'

interface FirstState extends LeftBehind {
  /** Tracked, staged, untracked and carried files; not the other ignored ones. */
  tree: string
  /** Empty: no commit yet. */
  head: string
  /** A commit for the work tree to begin at. */
  commit: string
  /** Ignored files in `tree`. */
  carried: string[]
}

/** Stores the person's files; only reads theirs and their index. Throws BatonError `workspace-unreadable`, `disk-full`. */
export async function storePersonsFiles(options: {
  git: GitProgram
  repository: Repository
  /** The person's work tree. */
  top: string
  data: string
  /** The session's shadow folder. */
  shadow: string
  carry: readonly string[]
}): Promise<FirstState> {
  const { git, repository, top, data, carry } = options
  const head = repository.head ?? ''
  const dir = `${options.shadow}.first`
  const shadow = new Shadow({ git, dir, root: top, repository })
  await rm(dir, { recursive: true, force: true })
  await shadow.prepare(repository, data)
  try {
    await shadow.list(head)
    const listed = splitPaths(await git.bytes(['ls-files', '-t', '-s', '-z'], { cwd: top }))
    const entries = listed.flatMap((line) => {
      const [, tag = '', entry = '', path = ''] = /^(.) (\d+ [0-9a-f]+ \d)\t(.*)$/s.exec(line) ?? []
      return [{ tag, entry, path }]
    })
    // A sparse checkout leaves files out on purpose: absent is not deleted.
    const sparse = entries.filter(({ tag }) => tag === 'S')
    const lines = sparse.map(({ entry, path }) => `${entry}\t${path}\0`).join('')
    if (lines !== '') {
      await shadow.run(['update-index', '-z', '--index-info'], { input: Buffer.from(lines, 'latin1') })
      await shadow.sparse(sparse.map(({ path }) => path))
    }
    // What is ignored and was added by force.
    const modules = entries.filter(({ entry }) => entry.startsWith('160000')).map(({ path }) => path)
    const known = await shadow.keepModules(new Set(modules))
    const added = entries.filter(({ tag, path }) => tag === 'H' && !known.has(path))
    await shadow.include(added.map(({ path }) => path))
    const ignored = carry.length > 0 ? await shadow.ignored(carryPatterns(carry)) : []
    const carried = ignored.filter((path) => mayCarry(path, carry))
    await shadow.include(carried)
    const { tree, large, closed } = await shadow.store()
    const args = ['commit-tree', tree, '-m', 'baton start']
    const commit = head || (await shadow.text(args, { env: identity('0') }))
    return { tree, head, commit, carried, large, closed }
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}
