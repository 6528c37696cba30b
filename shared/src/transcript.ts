/**
 * A session's transcript as data: what was asked, done, answered and decided, in journal order, without times, machines,
 * seqs or attempts. Two runs that say and do the same have equal transcripts, wherever and however often they moved (I7).
 */
import type { Opened } from './entries.ts'
import type { EffectError, Json, ToolInput } from './guest.ts'
import type { Intent, Outcome } from './journal.ts'

export type TranscriptItem =
  { t: 'prompt'; text: string } | { t: 'event'; type: string; data: Json } | EffectItem

/** `result` and `error` are absent while the effect is open. */
type EffectItem = { effect: number; result?: Json; error?: EffectError } & (
  | { t: 'llm' }
  | { t: 'tool'; name: string; input: ToolInput['input'] }
  | { t: 'approve'; name: string; input: ToolInput['input'] }
)

/** Folds opened entries, in order, into a transcript. A long result stands as its blob's head. */
export function transcriptOf(entries: Iterable<Opened>): TranscriptItem[] {
  const items: TranscriptItem[] = []
  const open = new Map<number, EffectItem>()
  for (const entry of entries) {
    if (entry.kind === 'intent') {
      const item = itemOf(entry.body)
      if (!item || entry.body.attempt > 1) continue
      open.set(item.effect, item)
      items.push(item)
    } else if (entry.kind === 'outcome') {
      const item = open.get(entry.body.effect)
      if (item) close(item, entry.body)
    } else if (entry.kind === 'received' && entry.body.kind === 'prompt') {
      items.push({ t: 'prompt', text: entry.body.command.text })
    } else if (entry.kind === 'event' && entry.body.effect !== undefined) {
      items.push({ t: 'event', type: entry.body.type, data: entry.body.data })
    }
  }
  return items
}

function itemOf({ effect, kind, tool, approve }: Intent): EffectItem | undefined {
  if (kind === 'llm') return { t: 'llm', effect }
  if (tool) return { t: 'tool', effect, name: tool.name, input: tool.input }
  if (approve) return { t: 'approve', effect, name: approve.name, input: approve.input }
  return undefined
}

function close(item: EffectItem, { result, error, blob }: Outcome): void {
  if (error) item.error = error
  else if (blob) item.result = { head: blob.head, bytes: blob.bytes }
  else item.result = item.t === 'approve' ? decisionOf(result) : (result ?? null)
}

/** Which device decided is not part of what was said. */
function decisionOf(result: Json | undefined): Json {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return null
  const { approved, note } = result
  return { approved: approved ?? null, ...(note === undefined ? {} : { note }) }
}
