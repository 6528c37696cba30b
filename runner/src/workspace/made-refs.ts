/**
 * Branches, tags and stashes that were made in the repository since the session began there. They travel with the session; those that
 * were there before are the person's and stay. Refs below refs/heads/baton/ are Baton's own: only this session's travel.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { replaceWhole } from '../files/replace.ts'
import type { Checkout } from './checkout.ts'

export interface Ref {
  /** Full name. */
  name: string
  oid: string
}

export interface Stash {
  oid: string
  message: string
}

export interface MadeRefs {
  refs: Ref[]
  /** Oldest first. */
  stashes: Stash[]
  /** Commits that they lead to. */
  commits: string[]
  /** Content of annotated tags by object id. */
  tags: Map<string, Buffer>
}

interface Look {
  refs: (Ref & { type: string; commit: string })[]
  /** Newest first. */
  stashes: Stash[]
}

const Baseline = v.object({ names: v.array(v.string()), stashes: v.array(v.string()) })
type Baseline = v.InferOutput<typeof Baseline>

const REFS_MAX = 500
const FORMAT = '%(objectname) %(objecttype) %(*objectname)%(*objecttype) %(refname)'

export class RefKeeper {
  readonly #checkout: Checkout
  readonly #sid: string
  readonly #path: string
  readonly #stashLog: string
  #baseline: Baseline | undefined
  #tags: { key: string; contents: Map<string, Buffer> } | undefined

  /** `dir`: where it is noted what was there before. */
  constructor(checkout: Checkout, sid: string, dir: string) {
    this.#checkout = checkout
    this.#sid = sid
    this.#path = join(dir, 'refs.json')
    this.#stashLog = join(checkout.common, 'logs', 'refs', 'stash')
  }

  /** Notes what is there before the session begins here. */
  async begin(): Promise<void> {
    const [refs, stashes] = await Promise.all([this.#list(), this.#stashes()])
    this.#baseline = { names: refs.map(({ name }) => name), stashes: stashes.map(({ oid }) => oid) }
    await replaceWhole(this.#path, JSON.stringify(this.#baseline), { sync: 'file' })
  }

  /** What there is now, for `made`. */
  async look(): Promise<Look> {
    const [refs, stashes] = await Promise.all([this.#list(), this.#stashes()])
    return { refs, stashes }
  }

  /** What was made since. `current`: the branch that HEAD is on, which travels as such. `also`: a ref that must travel. */
  async made({ refs: listed, stashes }: Look, current: string, also?: string): Promise<MadeRefs> {
    const baseline = await this.#before()
    if (!baseline) return { refs: [], stashes: [], commits: [], tags: new Map() }
    const before = new Set(baseline.names)
    const found = listed
      .filter(({ name }) => name !== `refs/heads/${current}`)
      .filter(({ name }) => name === also || (!before.has(name) && this.#isOurs(name)))
      .slice(0, REFS_MAX)
    const annotated = found.filter(({ type }) => type === 'tag').map(({ oid }) => oid)
    const old = new Set(baseline.stashes)
    const kept = stashes.filter(({ oid }) => !old.has(oid)).slice(0, REFS_MAX)
    return {
      refs: found.map(({ name, oid }) => ({ name, oid })),
      stashes: kept.toReversed(),
      commits: [...new Set([...found.map(({ commit }) => commit), ...kept.map(({ oid }) => oid)])],
      tags: await this.#contents(annotated),
    }
  }

  /**
   * Brings refs here. A ref that is in the way with other content stays as it is; the one that comes gets another name, and a
   * sentence tells so. `known`: what the last checkpoint here held. Returns sentences for the person.
   */
  async bring(
    coming: MadeRefs,
    known: MadeRefs,
    current: string,
  ): Promise<{ told: string[]; renamed: Map<string, string> }> {
    const told: string[] = []
    const renamed = new Map<string, string>()
    if (coming.refs.length === 0 && coming.stashes.length === 0) return { told, renamed }
    for (const content of coming.tags.values()) {
      await this.#checkout.refs(['hash-object', '-t', 'tag', '-w', '--stdin'], { input: content })
    }
    const here = new Map((await this.#list()).map(({ name, oid }) => [name, oid]))
    const held = await this.#checkout.heldElsewhere()
    const last = new Map(known.refs.map(({ name, oid }) => [name, oid]))
    const before = new Set((await this.#before())?.names)
    for (const { name, oid } of coming.refs) {
      const at = here.get(name)
      if (at === oid) continue
      const free = at === undefined || (at === last.get(name) && !before.has(name))
      const isHeld = held.has(name) || name === `refs/heads/${current}`
      if (free && !isHeld && (await this.#set(name, oid))) continue
      const place = this.#otherName(name)
      renamed.set(name, place)
      told.push(`${shortName(name)} is something else here, so the session's is ${shortName(place)}.`)
      await this.#checkout.refs(['update-ref', place, oid])
    }
    const stashed = new Set((await this.#stashes()).map(({ oid }) => oid))
    for (const { oid, message } of coming.stashes) {
      if (!stashed.has(oid)) await this.#checkout.own(['stash', 'store', '-m', message, oid])
    }
    return { told, renamed }
  }

  async #before(): Promise<Baseline | undefined> {
    if (this.#baseline) return this.#baseline
    const text = await readFile(this.#path, 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Baseline), text)
    if (parsed.success) this.#baseline = parsed.output
    return this.#baseline
  }

  /** False when another ref is in the way, say `a` for `a/b`. */
  #set(name: string, oid: string): Promise<boolean> {
    return this.#checkout.refs(['update-ref', name, oid]).then(
      () => true,
      () => false,
    )
  }

  #isOurs(name: string): boolean {
    if (!name.startsWith('refs/heads/baton/')) return true
    return name.startsWith(`refs/heads/baton/${this.#sid.slice(0, 8)}`)
  }

  #otherName(name: string): string {
    const short = this.#sid.slice(0, 8)
    const flat = shortName(name).replaceAll('/', '-')
    return name.startsWith('refs/tags/')
      ? `refs/tags/baton-${short}-${flat}`
      : `refs/heads/baton/${short}-${flat}`
  }

  /** Branches and tags that lead to commits. */
  async #list(): Promise<Look['refs']> {
    const args = ['for-each-ref', `--format=${FORMAT}`, 'refs/heads', 'refs/tags']
    const lines = (await this.#checkout.refs(args)).toString('utf8').split('\n')
    return lines.flatMap((line) => {
      const [, oid = '', type = '', peeled = '', name = ''] =
        /^([0-9a-f]+) (commit|tag) (?:([0-9a-f]+)commit)? (.+)$/.exec(line) ?? []
      const commit = type === 'commit' ? oid : peeled
      return commit === '' ? [] : [{ name, oid, type, commit }]
    })
  }

  /** Newest first. */
  async #stashes(): Promise<Stash[]> {
    if (!existsSync(this.#stashLog)) return []
    const args = ['log', '-g', '-z', '--format=%H %gs', '--no-show-signature', 'refs/stash', '--']
    const lines = await this.#checkout.refs(args).catch(() => Buffer.alloc(0))
    return lines
      .toString('utf8')
      .split('\0')
      .filter((line) => line !== '')
      .map((line) => ({
        oid: line.split(' ', 1)[0] ?? '',
        message: line.slice(line.indexOf(' ') + 1).split('\n')[0] ?? '',
      }))
  }

  async #contents(oids: string[]): Promise<Map<string, Buffer>> {
    const key = oids.join()
    if (this.#tags?.key === key) return this.#tags.contents
    const contents = new Map<string, Buffer>()
    for (const oid of oids) contents.set(oid, await this.#checkout.refs(['cat-file', 'tag', oid]))
    this.#tags = { key, contents }
    return contents
  }
}

function shortName(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//, '')
}
