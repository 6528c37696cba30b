/** Warns of a model's name that is known neither here nor to a runner of the account. */
import { modelDoubt } from '../model/names.ts'
import type { NamedRunner } from './account.ts'
import { clean } from './term/text.ts'

export interface Doubts {
  /** Absent: none. */
  warnings?: readonly string[]
}

/** `model`: as it was typed, if it was. */
export function doubtsOf(model: string | undefined, runners: readonly Pick<NamedRunner, 'about'>[]): Doubts {
  const offered = [...new Set(runners.flatMap(({ about }) => about.models ?? []))]
  const doubt = model === undefined ? undefined : modelDoubt(model, offered)
  return doubt === undefined ? {} : { warnings: [doubt] }
}

/** To people, beside what a command prints. */
export function tellDoubts({ warnings = [] }: Doubts, sid: string): void {
  for (const words of warnings)
    process.stderr.write(`baton: ${clean(words)} To change it: baton set ${sid.slice(0, 8)} --model MODEL\n`)
}
