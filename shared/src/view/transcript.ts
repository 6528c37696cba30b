/**
 * The transcript: a reading of the journal (design.md, Journal). A pure reducer turns opened entries into items; entries are
 * dense and numbered, so one that was reduced before changes nothing (F13). What is still open stands apart from `items`:
 * running model calls with their live text, pending approvals, a move on its way.
 */
import { intent, outcome } from './effects.ts'
import type { Read } from './entry.ts'
import { event, lease } from './events.ts'
import type { Approval } from './items.ts'
import type { Draft, Retrying, Transcript } from './model.ts'
import { received } from './received.ts'

export type { Moving, Retrying, Transcript } from './model.ts'

export const EMPTY: Transcript = {
  seq: 0,
  items: [],
  open: new Map(),
  live: new Map(),
  thoughts: new Map(),
  effects: 0,
  granted: new Map(),
  revision: 0,
  settings: {},
  access: new Map(),
  documents: new Map(),
  answers: new Map(),
  rules: [],
}

/** Adds entries, in order. Entries up to `transcript.seq` are ignored. */
export function reduce(transcript: Transcript, entries: readonly Read[]): Transcript {
  const fresh = entries.filter((entry) => entry.seq > transcript.seq)
  if (fresh.length === 0) return transcript
  const draft: Draft = {
    ...transcript,
    items: [...transcript.items],
    open: new Map(transcript.open),
    live: new Map(transcript.live),
    thoughts: new Map(transcript.thoughts),
    granted: new Map(transcript.granted),
  }
  for (const entry of fresh) {
    if (entry.seq <= draft.seq) continue
    draft.seq = entry.seq
    apply(draft, entry)
  }
  return draft
}

/**
 * Sets the live text of a running model call; `text` is whole each time. A delta may overtake its intent, so one for an
 * effect not seen yet is kept; one that comes after the outcome is dropped. `thought`: what the model thinks just now.
 */
export function withDelta(transcript: Transcript, effect: number, text: string, thought = ''): Transcript {
  const { live, thoughts } = transcript
  const known = transcript.open.has(effect) || effect > transcript.effects
  if (!known || (live.get(effect) === text && (thoughts.get(effect) ?? '') === thought)) return transcript
  return {
    ...transcript,
    live: new Map(live).set(effect, text),
    thoughts: new Map(thoughts).set(effect, thought),
  }
}

/** Everything that waits for a decision, oldest first (F34, F35). */
export function pendingApprovals(transcript: Transcript): Approval[] {
  const pending: Approval[] = []
  for (const [, effect] of transcript.open) {
    if (effect.kind !== 'approve' || effect.item === undefined) continue
    const item = transcript.items[effect.item]
    if (item?.kind === 'tool' && item.approval)
      pending.push({ ...item.approval, name: item.name, input: item.input, at: item.at })
  }
  return pending
}

/** Is a model call under way? */
export function isThinking(transcript: Transcript): boolean {
  for (const effect of transcript.open.values()) if (effect.kind === 'llm') return true
  return false
}

/** Live text of running model calls, by effect. Of an effect that is not known yet nobody knows what it is. */
export function liveTexts({ live, open }: Transcript): [effect: number, text: string][] {
  return [...live].filter(([effect, text]) => text !== '' && open.get(effect)?.kind === 'llm')
}

/** The newest that a running model call thinks; undefined: none thinks aloud. */
export function liveThought({ thoughts, open }: Transcript): string | undefined {
  for (const [effect, thought] of thoughts)
    if (thought !== '' && open.get(effect)?.kind === 'llm') return thought
  return undefined
}

/** The newest output of running calls, by their item's index. */
export function liveOutputs({ live, open }: Transcript): Map<number, string> {
  const outputs = new Map<number, string>()
  for (const [effect, text] of live) {
    const running = open.get(effect)
    if (running?.kind === 'tool' && running.item !== undefined && text !== '') outputs.set(running.item, text)
  }
  return outputs
}

/** The attempt of a model call that follows a failed one, until the model begins to answer. */
export function retryOf({ open, live, thoughts }: Transcript): Retrying | undefined {
  for (const [effect, { kind, retry }] of open)
    if (kind === 'llm' && retry && !live.get(effect) && !thoughts.get(effect)) return retry
  return undefined
}

function apply(draft: Draft, entry: Read): void {
  switch (entry.kind) {
    case 'received':
      received(draft, entry.body, entry.seq, entry.at)
      return
    case 'intent':
      intent(draft, entry.body, entry.seq, entry.at)
      return
    case 'outcome':
      outcome(draft, entry.body, entry.seq, entry.at)
      return
    case 'snapshot':
      draft.snapshot_bytes = entry.body.bytes
      return
    case 'checkpoint':
      return
    case 'event':
      event(draft, entry.body, entry.seq, entry.at)
      return
    case 'lease':
      lease(draft, entry)
      return
    case 'unreadable':
      draft.items.push({ kind: 'unreadable', id: `e${entry.seq}`, at: entry.at })
  }
}
