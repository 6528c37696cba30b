/**
 * Configs in folders where sessions work in place. Whatever an agent writes there lies beside the person's own files, and a config is
 * code that runs in the runner: so from the first such session on it counts only as the person saw it, with all files that it
 * imports. `baton trust FOLDER` says that they have seen it again.
 *
 *     <data>/configs/<hash of the folder>.json
 */
import { existsSync } from 'node:fs'
import { mkdir, readFile, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import * as v from 'valibot'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { CONFIG_FILES, loadConfig, type LoadedConfig } from '../config.ts'
import { replaceWhole } from '../files/replace.ts'
import { isInside } from '../tools/paths.ts'
import type { Files } from './modules.ts'

const Note = v.pipe(v.string(), v.parseJson(), v.object({ files: v.record(v.string(), v.string()) }))

export class Trust {
  readonly #folder: string
  readonly #folders: readonly string[]

  /** `folders`: those of this runner. */
  constructor(data: string, folders: readonly string[] = []) {
    this.#folder = join(data, 'configs')
    this.#folders = folders
  }

  /** The config of a folder. Throws BatonError `config-changed`, `config-invalid`. */
  async load(folder: string): Promise<LoadedConfig> {
    return loadConfig(folder, await this.#trusted(folder))
  }

  /** Does the config of a folder count only as the person saw it? */
  async isPinned(folder: string): Promise<boolean> {
    return (await this.#trusted(folder)) !== undefined
  }

  /** Before a session works in `root` itself: what is there now is the person's. */
  async begin(root: string): Promise<void> {
    for (const folder of await this.#within(root)) {
      if (existsSync(await this.#place(folder))) continue
      // One that can't be loaded is none; mended, it has to be seen.
      const { files } = await loadConfig(folder).catch(() => ({ files: {} }))
      await this.#write(folder, files)
    }
  }

  /**
   * Runs the config, and trusts it as it is from now on. Returns its files. Where none is and none was seen there is nothing to
   * trust, and one that comes later counts. Throws BatonError `config-invalid`.
   */
  async confirm(folder: string): Promise<string[]> {
    const { files } = await loadConfig(folder)
    const paths = Object.keys(files)
    if (paths.length > 0 || (await this.isPinned(folder))) await this.#write(folder, files)
    return paths
  }

  /** Files in `root`, relative to it, that are configs or imported by one. */
  async kept(root: string): Promise<string[]> {
    const top = await realpath(root)
    const kept: string[] = []
    for (const folder of await this.#within(root)) {
      const own = await realpath(folder)
      const files = Object.keys((await this.#trusted(folder)) ?? {})
      for (const file of [...CONFIG_FILES.map((name) => join(own, name)), ...files])
        if (isInside(top, file)) kept.push(relative(top, file))
    }
    return [...new Set(kept)]
  }

  async #within(root: string): Promise<string[]> {
    const top = await realpath(root)
    const inside: string[] = []
    for (const folder of new Set([...this.#folders, root])) {
      const real = await realpath(folder).catch(() => undefined)
      if (real !== undefined && isInside(top, real)) inside.push(folder)
    }
    return inside
  }

  async #trusted(folder: string): Promise<Files | undefined> {
    const text = await readFile(await this.#place(folder), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (text === undefined) return undefined
    const parsed = v.safeParse(Note, text)
    return parsed.success ? parsed.output.files : {}
  }

  async #write(folder: string, files: Files): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    await replaceWhole(await this.#place(folder), JSON.stringify({ files }))
  }

  async #place(folder: string): Promise<string> {
    const real = await realpath(folder).catch(() => folder)
    return join(this.#folder, `${sha256Hex(real).slice(0, 32)}.json`)
  }
}
