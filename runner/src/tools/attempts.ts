/**
 * What a call is about to make of a file, noted before it does: when its runner is killed, or the call cut off, before the outcome is
 * durable, the next attempt on these files knows whether it is made already. Nothing is guessed from what the file looks like.
 *
 *     <folder>/changes.json   the notes of calls whose outcome is not known to be durable
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Json } from '@baton/shared/guest.ts'
import { replaceWhole } from '../files/replace.ts'

const json = v.custom<Json>((value) => value !== undefined)
const Sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))

const FileChange = v.object({
  /** Where the file really is, relative to the root of the workspace. */
  path: v.string(),
  /** Hex SHA-256 of its bytes; `none`: there was no file. */
  before: v.union([Sha256, v.literal('none')]),
  after: Sha256,
  /** What the call gives back once it is made. */
  answer: v.object({
    text: v.string(),
    is_error: v.boolean(),
    detail: v.optional(v.record(v.string(), json)),
  }),
})
export type FileChange = v.InferOutput<typeof FileChange>

const Note = v.object({ effect: v.number(), digest: v.string(), change: FileChange })
type Note = v.InferOutput<typeof Note>

/** One call, as often as it is begun. */
export interface Attempt {
  /** What an earlier attempt was about to make; undefined: none came so far here. */
  earlier(): Promise<FileChange | undefined>
  /** Resolves when the note is on the disk. Throws BatonError `disk-full`. */
  note(change: FileChange): Promise<void>
}

export class Attempts {
  readonly #path: string
  /** Effects with a note of this process. */
  readonly #noted = new Set<number>()
  /** One change of the file at a time. */
  #queue: Promise<unknown> = Promise.resolve()

  constructor(folder: string) {
    this.#path = join(folder, 'changes.json')
  }

  /** `digest`: of the intent. `isOpen`: has an effect no outcome yet? */
  of(effect: number, digest: string, isOpen: (effect: number) => boolean): Attempt {
    return {
      earlier: async () =>
        (await this.#read()).find((note) => note.effect === effect && note.digest === digest)?.change,
      note: async (change) => {
        await this.#keep(
          (note) => note.effect !== effect && isOpen(note.effect),
          [{ effect, digest, change }],
        )
        this.#noted.add(effect)
      },
    }
  }

  /** The outcome is durable. Never rejects: a note too many is dropped with the next one. */
  async ended(effect: number): Promise<void> {
    if (!this.#noted.delete(effect)) return
    await this.#keep((note) => note.effect !== effect).catch(() => undefined)
  }

  /** What calls were about to make of which no outcome is known to be durable. */
  async changes(): Promise<FileChange[]> {
    return (await this.#read()).map(({ change }) => change)
  }

  #keep(isKept: (note: Note) => boolean, more: readonly Note[] = []): Promise<void> {
    const kept = this.#queue.then(async () => {
      const notes = [...(await this.#read()).filter(isKept), ...more]
      await replaceWhole(this.#path, JSON.stringify(notes), { sync: more.length > 0 ? 'folder' : 'none' })
    })
    this.#queue = kept.catch(() => undefined)
    return kept
  }

  async #read(): Promise<Note[]> {
    const text = await readFile(this.#path, 'utf8').catch(() => '[]')
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), v.array(Note)), text)
    return parsed.success ? parsed.output : []
  }
}
