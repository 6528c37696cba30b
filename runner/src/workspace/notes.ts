/** What a workspace notes of itself, in the folder of its shadow: for the runner that comes to it next. */
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { diskError, replaceWhole } from '../files/replace.ts'
import { joinPaths, splitPaths } from './byte-paths.ts'

const KnownCheckpoint = v.object({
  kind: v.optional(v.picklist(['git', 'folder', 'virtual']), 'git'),
  commit: v.string(),
  tree: v.string(),
  head: v.string(),
  branch: v.string(),
  state: v.optional(v.string()),
})
export type Known = v.InferOutput<typeof KnownCheckpoint>

/** The older one is as good after a power failure, only that more is taken for somebody's edits. */
const RECORD = { sync: 'file' } as const

export class Notes {
  readonly #folder: string
  #known: Known | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** The last checkpoint that was taken here or came here and that the journal is known to hold. */
  async known(): Promise<Known | undefined> {
    if (this.#known) return this.#known
    const text = await readFile(this.#at('checkpoint.json'), 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), KnownCheckpoint), text)
    return parsed.success ? parsed.output : undefined
  }

  /** Throws BatonError `disk-full`. */
  async setKnown(known: Known): Promise<void> {
    try {
      await replaceWhole(this.#at('checkpoint.json'), JSON.stringify(known), RECORD)
      await rm(this.#at('newest'), { force: true })
    } catch (error) {
      throw diskError(error)
    }
    this.#known = known
  }

  /** The files are as in that checkpoint, and nobody else has had the session since. */
  get isNewest(): boolean {
    return existsSync(this.#at('newest'))
  }

  async setNewest(): Promise<void> {
    await writeFile(this.#at('newest'), '').catch(() => undefined)
  }

  /** Ignored files that travel. */
  async carried(): Promise<string[]> {
    return splitPaths(await readFile(this.#at('carried')).catch(() => Buffer.alloc(0)))
  }

  async setCarried(paths: readonly string[]): Promise<void> {
    await replaceWhole(this.#at('carried'), joinPaths(paths), RECORD)
  }

  /** What a runner that was killed meanwhile did not come to tell. */
  async untold(): Promise<string[]> {
    const text = await readFile(this.#at('telling.json'), 'utf8').catch(() => '[]')
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), v.array(v.string())), text)
    return parsed.success ? parsed.output : []
  }

  async setUntold(told: readonly string[]): Promise<void> {
    if (told.length > 0) await replaceWhole(this.#at('telling.json'), JSON.stringify(told), RECORD)
  }

  async allTold(): Promise<void> {
    await rm(this.#at('telling.json'), { force: true })
  }

  #at(name: string): string {
    return join(this.#folder, name)
  }
}

export function isSame(a: Known, b: Known): boolean {
  return (
    a.commit === b.commit &&
    a.tree === b.tree &&
    a.branch === b.branch &&
    a.state === b.state &&
    a.head === b.head
  )
}
