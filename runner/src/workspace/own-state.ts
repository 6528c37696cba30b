/** What is staged or under way in a work tree and in no checkpoint: to lay one out ends it (I11). */
import { listPaths } from './byte-paths.ts'
import type { Extras } from './extras.ts'

export interface OwnState {
  /** What is under way, as people call it. */
  operation: string | undefined
  /** Paths of which something is staged. */
  staged: string[]
}

/** First what git looks at first. */
const OPERATIONS: readonly [file: RegExp, name: string][] = [
  [/^rebase-(merge|apply)\//, 'a rebase'],
  [/^MERGE_HEAD$/, 'a merge'],
  [/^CHERRY_PICK_HEAD$|^sequencer\//, 'a cherry-pick'],
  [/^REVERT_HEAD$/, 'a revert'],
  [/^BISECT_(LOG|START)$/, 'a bisection'],
  [/./, 'a message for a commit'],
]

/** `known`: what checkpoints hold. Undefined: there is nothing else. */
export function ownStateOf(here: Extras, known: readonly Extras[]): OwnState | undefined {
  const files = [...here.operation].filter(
    ([path, content]) => !known.some(({ operation }) => operation.get(path)?.equals(content)),
  )
  const operation = OPERATIONS.find(([file]) => files.some(([path]) => file.test(path)))?.[1]
  const lines = new Set(known.flatMap(({ staged }) => staged.info.split('\0')))
  const intents = new Set(known.flatMap(({ staged }) => staged.intents))
  const staged = [
    ...here.staged.info
      .split('\0')
      .filter((line) => !lines.has(line) && line !== '')
      .map((line) => line.slice(line.indexOf('\t') + 1)),
    ...here.staged.intents.filter((path) => !intents.has(path)),
  ]
  if (operation === undefined && staged.length === 0) return undefined
  return { operation, staged: [...new Set(staged)] }
}

/** Of an operation that a person can end or abort, not of a mere message. */
export function isUnderWay({ operation }: OwnState): boolean {
  return operation !== undefined && operation !== OPERATIONS.at(-1)?.[1]
}

export function describeOwnState({ operation, staged }: OwnState): string {
  const parts = operation === undefined ? [] : [operation]
  if (staged.length > 0) parts.push(`what was staged (${listPaths(staged)})`)
  return parts.join(' and ')
}
