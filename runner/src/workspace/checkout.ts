/** A work tree as git sees it: HEAD, branch, index, and the operation (merge, rebase …) that is under way. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { joinPaths, splitPaths } from './byte-paths.ts'
import type { GitOptions, GitProgram } from './git-program.ts'
import { identity } from './identity.ts'
import { isAncestor, readRef, type Repository } from './repository.ts'

/** Files and folders in which git keeps an operation under way (gitrepository-layout(5)). */
const OPERATION = [
  'MERGE_HEAD',
  'MERGE_MSG',
  'MERGE_MODE',
  'MERGE_AUTOSTASH',
  'SQUASH_MSG',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'REBASE_HEAD',
  'rebase-merge',
  'rebase-apply',
  'sequencer',
  'BISECT_LOG',
  'BISECT_NAMES',
  'BISECT_START',
  'BISECT_TERMS',
  'BISECT_EXPECTED_REV',
  'BISECT_ANCESTORS_OK',
  'refs/bisect',
  'refs/rewritten',
]

export interface Position {
  /** Empty: no commit yet. */
  head: string
  /** Empty: detached. */
  branch: string
}

/** What was staged, relative to HEAD. */
export interface Staged {
  /** Input for `git update-index -z --index-info`, in latin1. */
  info: string
  /** Blobs that it speaks of. */
  objects: string[]
  /** Paths of which only the intent to add is staged. */
  intents: string[]
}

export interface CheckoutOptions {
  git: GitProgram
  sid: string
  root: string
  repository: Repository
  /** The work tree's git folder: .git, or .git/worktrees/<name>. */
  admin: string
  /** The person's own folder. */
  inPlace: boolean
}

export class Checkout {
  readonly admin: string
  readonly inPlace: boolean
  /** Where objects and refs are. */
  readonly common: string
  readonly #git: GitProgram
  readonly #sid: string
  readonly #root: string
  readonly #repository: Repository
  #staged: { stamp: string; head: string; staged: Staged } | undefined

  constructor(options: CheckoutOptions) {
    this.admin = options.admin
    this.inPlace = options.inPlace
    this.common = options.repository.common
    this.#git = options.git
    this.#sid = options.sid
    this.#root = options.root
    this.#repository = options.repository
  }

  async position(): Promise<Position> {
    const [result, link] = await Promise.all([
      this.#git.run(['--git-dir', this.admin, 'rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], {
        cwd: this.#root,
      }),
      readFile(join(this.admin, 'HEAD'), 'utf8').catch(() => ''),
    ])
    const branch = /^ref: refs\/heads\/(.+)$/m.exec(link)?.[1] ?? ''
    return { head: result.code === 0 ? result.stdout.toString('utf8').trim() : '', branch }
  }

  /** Paths in the index: all, those that a sparse checkout leaves out, submodules. */
  async indexPaths(): Promise<{ all: string[]; sparse: string[]; modules: string[] }> {
    const paths = { all: [] as string[], sparse: [] as string[], modules: [] as string[] }
    for (const line of splitPaths(await this.own(['ls-files', '-t', '-s', '-z']))) {
      const path = line.slice(line.indexOf('\t') + 1)
      paths.all.push(path)
      if (line.startsWith('S')) paths.sparse.push(path)
      if (line.slice(2).startsWith('160000')) paths.modules.push(path)
    }
    return paths
  }

  /** The index as far as it differs from `head`; conflicts and intents to add included. `stamp` tells when it changed. */
  async staged(head: string, stamp: string): Promise<Staged> {
    if (this.#staged?.stamp === stamp && this.#staged.head === head) return this.#staged.staged
    const base = head === '' ? await this.#emptyTree() : head
    const [changes, added, unmerged] = await Promise.all([
      this.own(['diff-index', '--cached', '--raw', '-z', '--no-renames', '--no-abbrev', base]),
      this.own(['diff-files', '--name-only', '-z', '--diff-filter=A', '--ignore-submodules=all']),
      this.own(['ls-files', '-u', '-z']),
    ])
    const intents = splitPaths(added)
    const hidden = new Set(intents)
    const lines: string[] = []
    const objects = new Set<string>()
    const fields = changes.toString('latin1').split('\0')
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const [, mode = '', , oid = '', kind = ''] = (fields[i] ?? '').split(' ')
      const path = fields[i + 1] ?? ''
      if (hidden.has(path)) continue
      if (kind === 'U' || mode === '000000') lines.push(`0 ${'0'.repeat(oid.length)}\t${path}`)
      else {
        lines.push(`${mode} ${oid}\t${path}`)
        if (mode !== '160000') objects.add(oid)
      }
    }
    for (const line of splitPaths(unmerged)) {
      const [, mode = '', oid = ''] = /^(\d+) ([0-9a-f]+) /.exec(line) ?? []
      lines.push(line)
      if (mode !== '160000') objects.add(oid)
    }
    const info = lines.map((line) => `${line}\0`).join('')
    const staged = { info, objects: [...objects].toSorted(), intents }
    this.#staged = { stamp, head, staged }
    return staged
  }

  /** Content of the files of an operation under way, by path in the git folder. */
  async operation(): Promise<Map<string, Buffer>> {
    const found = new Map<string, Buffer>()
    const take = async (path: string): Promise<void> => {
      const full = join(this.admin, path)
      const info = await stat(full).catch(() => undefined)
      if (info?.isDirectory())
        for (const name of (await readdir(full)).toSorted()) await take(`${path}/${name}`)
      else if (info?.isFile()) found.set(path, await readFile(full))
    }
    for (const path of OPERATION) await take(path)
    return found
  }

  /** Sets HEAD, branch and index; an operation under way is not under way any more. `branch` is made or moved. */
  async move(to: Position, staged?: Staged): Promise<void> {
    const stale = [...OPERATION, ...(this.inPlace ? [] : ['index.lock', 'HEAD.lock'])]
    await Promise.all(stale.map((name) => rm(join(this.admin, name), { recursive: true, force: true })))
    if (to.branch === '') {
      await this.own(['update-ref', '--no-deref', 'HEAD', to.head])
    } else {
      // First the commit, so that at no moment HEAD is a branch that does not exist.
      if (to.head !== '') await this.refs(['update-ref', `refs/heads/${to.branch}`, to.head])
      await this.own(['symbolic-ref', 'HEAD', `refs/heads/${to.branch}`])
    }
    await this.own(to.head === '' ? ['read-tree', '--empty'] : ['read-tree', '--reset', to.head])
    if (staged && staged.info !== '') {
      await this.own(['update-index', '-z', '--index-info'], { input: Buffer.from(staged.info, 'latin1') })
    }
    if (staged && staged.intents.length > 0) {
      const args = ['--literal-pathspecs', 'add', '-f', '-N', '--ignore-errors', '--pathspec-from-file=-']
      // A file that is gone has no intent any more.
      await this.#git.run([...this.#at(), ...args, '--pathspec-file-nul'], {
        cwd: this.#root,
        input: joinPaths(staged.intents),
      })
    }
  }

  /** Puts an operation under way again. */
  async resume(operation: Map<string, Uint8Array>): Promise<void> {
    for (const [path, content] of operation) {
      await mkdir(dirname(join(this.admin, path)), { recursive: true })
      await writeFile(join(this.admin, path), content)
    }
  }

  /**
   * A name for the session's branch: the wanted one when it is new, at `head` already, the present one, or ours and behind
   * `head`; else one under baton/ that is. A person's branch is never moved, but for the one that their own folder is on, and
   * that only forwards. Empty: detached, as wanted.
   */
  async freeBranch(head: string, wanted?: string, present?: Position, known?: Position): Promise<string> {
    if (wanted === '') return ''
    const own = `baton/${this.#sid.slice(0, 8)}`
    // Another session's branch is what a copy of that session comes with.
    const isOthers = wanted?.startsWith('baton/') && !wanted.startsWith(own)
    const names = wanted === undefined || wanted === own || isOthers ? [own] : [wanted, own]
    const held = names[0] === own ? new Set<string>() : await this.heldElsewhere()
    // A branch that had to be renamed on the way comes home under its own name.
    if (this.inPlace && present?.branch && wanted?.startsWith(own) && known?.branch === present.branch) {
      names.unshift(present.branch)
    }
    for (let n = 0; ; n++) {
      const name = names[n] ?? `${own}-${n}`
      if (held.has(`refs/heads/${name}`)) continue
      const at = await readRef(this.#git, this.#repository, `refs/heads/${name}`)
      if (name === present?.branch && (!this.inPlace || at === known?.head)) return name
      if (at === undefined || at === head) return name
      const ours = name.startsWith('baton/') || name === present?.branch
      if (ours && head !== '' && (await isAncestor(this.#git, this.#repository, at, head))) return name
    }
  }

  /** Branches, full names, that another work tree of the repository is on; not those of this session at another runner. */
  async heldElsewhere(): Promise<Set<string>> {
    const held = new Set<string>()
    const listed = (await this.refs(['worktree', 'list', '--porcelain'])).toString('utf8')
    for (const block of listed.split('\n\n')) {
      const path = /^worktree (.*)$/m.exec(block)?.[1] ?? ''
      const branch = /^branch (.*)$/m.exec(block)?.[1]
      const isOurs = path === this.#root || basename(path) === this.#sid
      if (branch !== undefined && !isOurs) held.add(branch)
    }
    return held
  }

  /** Git on the session's own HEAD and index. */
  own(args: string[], options: Omit<GitOptions, 'cwd'> = {}): Promise<Buffer> {
    return this.#git.bytes([...this.#at(), ...args], {
      ...options,
      cwd: this.#root,
      env: { ...identity(), ...options.env },
    })
  }

  refs(args: string[], options: Omit<GitOptions, 'cwd'> = {}): Promise<Buffer> {
    return this.#git.bytes(args, { ...options, cwd: this.#repository.common, env: identity() })
  }

  #at(): string[] {
    return ['--git-dir', this.admin, '--work-tree', this.#root]
  }

  async #emptyTree(): Promise<string> {
    return (await this.refs(['hash-object', '-t', 'tree', '--stdin'], { input: '' })).toString('utf8').trim()
  }
}
