/**
 * What a checkpoint holds beside the files: what was staged, an operation under way, branches, tags and stashes, empty folders,
 * and which files are carried although they are ignored. It is a commit with this tree, whose first parent is the commit of the
 * files; the other parents are the commits that it speaks of, so that they travel along.
 *
 *     files             tree of all files, when the commit's own tree lacks the carried ones
 *     carried  empty  intents   paths, each ended by NUL
 *     staged            input for `git update-index -z --index-info`, relative to HEAD
 *     objects/<oid>     the blobs that `staged` speaks of
 *     operation/…       files of the git folder: MERGE_HEAD, rebase-merge/…
 *     refs              lines of `<oid> <ref>`, stashes as `<oid> refs/stash <message>`, oldest first
 *     tags/<oid>        content of the annotated tags
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { joinPaths, splitPaths } from './byte-paths.ts'
import type { Staged } from './checkout.ts'
import { identity } from './identity.ts'
import type { MadeRefs, Ref, Stash } from './made-refs.ts'
import type { Shadow } from './shadow.ts'

export interface Extras {
  staged: Staged
  /** Content by path in the git folder. */
  operation: Map<string, Buffer>
  refs: MadeRefs
  /** Paths of empty folders, and of ignored files that travel. */
  empty: string[]
  carried: string[]
}

export const NO_EXTRAS: Extras = {
  staged: { info: '', objects: [], intents: [] },
  operation: new Map(),
  refs: { refs: [], stashes: [], commits: [], tags: new Map() },
  empty: [],
  carried: [],
}

/** Commits that an operation speaks of are looked for in this many words at most. */
const MENTIONED_MAX = 2000

/** Stores them; undefined when there are none. `files`: the whole tree, where it is not the tree of `commit`. */
export async function storeExtras(
  shadow: Shadow,
  extras: Extras,
  { commit, files, seconds }: { commit: string; files: string | undefined; seconds: string },
): Promise<string | undefined> {
  const contents = contentsOf(extras)
  if (contents.size === 0 && files === undefined) return undefined
  const dir = join(shadow.dir, 'extras')
  const index = join(shadow.dir, 'index.extras')
  const env = { GIT_INDEX_FILE: index }
  try {
    await rm(dir, { recursive: true, force: true })
    await rm(index, { force: true })
    await mkdir(dir, { recursive: true })
    const places: string[] = []
    for (const content of contents.values()) {
      const place = join(dir, String(places.length))
      await writeFile(place, content)
      places.push(place)
    }
    const hashed = await shadow.text(['hash-object', '-w', '--no-filters', '--stdin-paths'], {
      input: places.map((place) => `${place}\n`).join(''),
    })
    const oids = hashed.split('\n')
    const lines = Array.from(contents.keys(), (path, n) => `100644 ${oids[n]}\t${path}\0`)
    lines.push(...extras.staged.objects.map((oid) => `100644 ${oid}\tobjects/${oid}\0`))
    await shadow.run(['update-index', '-z', '--index-info'], {
      input: Buffer.from(lines.join(''), 'latin1'),
      env,
    })
    let tree = await shadow.text(['write-tree'], { env })
    if (files !== undefined) {
      const entries = await shadow.run(['ls-tree', '-z', tree])
      tree = await shadow.text(['mktree', '-z'], {
        input: Buffer.concat([entries, Buffer.from(`040000 tree ${files}\tfiles\0`)]),
      })
    }
    const parents = new Set([commit, ...extras.refs.commits, ...(await mentioned(shadow, extras.operation))])
    const args = ['commit-tree', tree, '-m', 'baton state', ...[...parents].flatMap((oid) => ['-p', oid])]
    return await shadow.text(args, { env: identity(seconds) })
  } finally {
    await rm(dir, { recursive: true, force: true })
    await rm(index, { force: true })
  }
}

/** Reads them back. Absent: there were none. */
export async function readExtras(shadow: Shadow, state: string | undefined): Promise<Extras> {
  if (state === undefined) return NO_EXTRAS
  const listed = (await shadow.run(['ls-tree', '-r', '-z', state, '.'])).toString('latin1').split('\0')
  const oids = new Map<string, string>()
  for (const line of listed) {
    const [, oid, path] = /^\d+ blob ([0-9a-f]+)\t(.+)$/s.exec(line) ?? []
    if (oid && path && !path.startsWith('files/') && !path.startsWith('objects/')) oids.set(path, oid)
  }
  const read = async (path: string): Promise<Buffer> => {
    const oid = oids.get(path)
    return oid === undefined ? Buffer.alloc(0) : shadow.run(['cat-file', 'blob', oid])
  }
  const below = async (folder: string): Promise<Map<string, Buffer>> => {
    const found = new Map<string, Buffer>()
    for (const path of oids.keys()) {
      if (path.startsWith(folder)) found.set(path.slice(folder.length), await read(path))
    }
    return found
  }
  const [[info, intents], [empty, carried], refs, operation, tags] = await Promise.all([
    Promise.all([read('staged'), read('intents')]),
    Promise.all([read('empty'), read('carried')]),
    read('refs'),
    below('operation/'),
    below('tags/'),
  ])
  return {
    staged: { info: info.toString('latin1'), objects: [], intents: splitPaths(intents) },
    operation,
    refs: { ...parseRefs(refs.toString('utf8')), commits: [], tags },
    empty: splitPaths(empty),
    carried: splitPaths(carried),
  }
}

function contentsOf({ staged, operation, refs, empty, carried }: Extras): Map<string, Uint8Array> {
  const contents = new Map<string, Uint8Array>()
  const add = (path: string, content: Uint8Array): void => {
    if (content.length > 0) contents.set(path, content)
  }
  add('staged', Buffer.from(staged.info, 'latin1'))
  add('intents', joinPaths(staged.intents))
  add('empty', joinPaths(empty))
  add('carried', joinPaths(carried))
  add('refs', Buffer.from(formatRefs(refs)))
  // An empty file may mean something to git.
  for (const [path, content] of operation) contents.set(`operation/${path}`, content)
  for (const [oid, content] of refs.tags) contents.set(`tags/${oid}`, content)
  return contents
}

function formatRefs({ refs, stashes }: MadeRefs): string {
  return [
    ...refs.map(({ name, oid }) => `${oid} ${name}\n`),
    ...stashes.map(({ oid, message }) => `${oid} refs/stash ${message}\n`),
  ].join('')
}

function parseRefs(text: string): { refs: Ref[]; stashes: Stash[] } {
  const refs: Ref[] = []
  const stashes: Stash[] = []
  for (const line of text.split('\n')) {
    const [, oid = '', name = '', message] = /^(\S+) (\S+)(?: (.*))?$/.exec(line) ?? []
    if (name === 'refs/stash') stashes.push({ oid, message: message ?? '' })
    else if (name !== '') refs.push({ oid, name })
  }
  return { refs, stashes }
}

/** The commits among the object ids in the files of an operation. */
async function mentioned(shadow: Shadow, operation: Map<string, Buffer>): Promise<string[]> {
  const words = new Set<string>()
  for (const content of operation.values()) {
    for (const [oid] of content.toString('latin1').matchAll(/\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b/g))
      words.add(oid)
  }
  if (words.size === 0) return []
  const input = [...words].slice(0, MENTIONED_MAX).map((oid) => `${oid}\n`)
  const answers = await shadow.text(['cat-file', '--batch-check'], { input: input.join('') })
  return [...answers.matchAll(/^([0-9a-f]+) commit \d+$/gm)].map((match) => match[1] ?? '').toSorted()
}
