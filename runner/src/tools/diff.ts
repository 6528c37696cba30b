/** What an edit changed, for people. */
import { createTwoFilesPatch, structuredPatch } from 'diff'
import type { Json } from '@baton/shared/guest.ts'
import { bounded } from './text.ts'

const DIFF_CHARS = 20_000
/** Beyond this many changed lines the exact difference is not worth the time. */
const EDIT_LENGTH_MAX = 2_000

/** A unified diff, and how many lines were added and removed. Without `diff` when it would be too long to compute. */
export function diffDetail(path: string, before: string, after: string): { [key: string]: Json } {
  const options = { context: 3, maxEditLength: EDIT_LENGTH_MAX }
  const patch = structuredPatch(path, path, before, after, '', '', options)
  if (!patch) return { path }
  const lines = patch.hunks.flatMap((hunk) => hunk.lines)
  return {
    path,
    diff: bounded(createTwoFilesPatch(path, path, before, after, '', '', options) ?? '', DIFF_CHARS),
    added: lines.filter((line) => line.startsWith('+')).length,
    removed: lines.filter((line) => line.startsWith('-')).length,
  }
}
