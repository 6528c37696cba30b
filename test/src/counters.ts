/** Tools of a repository whose runs are counted outside of Baton, and which end only when the test lets them (F18). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export class Counters {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** A `baton.config.ts` with `probe`, which may run again, and `launch`, which may never. */
  config(): string {
    return `import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
const tool = (name, replay) => ({
  description: name,
  input: { type: 'object', properties: {} },
  replay,
  async execute(_input, { signal }) {
    appendFileSync(${JSON.stringify(this.#folder)} + '/' + name, 'x')
    while (!existsSync(${JSON.stringify(this.#folder)} + '/' + name + '.open')) {
      await sleep(10, undefined, { signal })
    }
    return name + ' done'
  },
})
export default { tools: { probe: tool('probe', 'safe'), launch: tool('launch', 'never') } }
`
  }

  /** How often the tool was begun. */
  runs(name: string): number {
    const file = join(this.#folder, name)
    return existsSync(file) ? readFileSync(file, 'utf8').length : 0
  }

  /** Lets the tool end, now and from now on. */
  open(name: string): void {
    writeFileSync(join(this.#folder, `${name}.open`), '')
  }
}
