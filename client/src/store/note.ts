/** A person's change of a document, kept with the drafts until the agent has taken it (I11). Pure. */
import * as v from 'valibot'
import type { DocumentState, Json } from '@baton/shared/guest.ts'

/** `version`: of the value that the person saw. `command`: the change was sent under this id. */
export interface Edit {
  version: number
  value: Json
  command?: string
}

const Kept = v.object({
  version: v.number(),
  value: v.custom<Json>((value) => value !== undefined),
  command: v.optional(v.string()),
})

/** Name of the draft of a document. */
export const draftOf = (sid: string, name: string): string => `note/${sid}/${name}`

export function editToText(edit: Edit): string {
  return JSON.stringify(edit)
}

/** Undefined: nothing was kept, or nothing that can be read. */
export function editFromText(text: string): Edit | undefined {
  if (text === '') return undefined
  try {
    const { version, value, command } = v.parse(Kept, JSON.parse(text))
    return command === undefined ? { version, value } : { version, value, command }
  } catch {
    return undefined
  }
}

/**
 *   none ──typed──▸ edited ──saved──▸ sent ──taken──▸ none
 *                     ▴  └─ the agent changed it meanwhile ─▸ behind ──saved over it──▸ sent
 *                     └──────────────refused (why)──────────────────────────────────────┘
 */
export type Standing =
  { at: 'none' } | { at: 'edited' } | { at: 'behind' } | { at: 'sent' } | { at: 'refused'; why: string }

export function standingOf(
  edit: Edit | undefined,
  document: Pick<DocumentState, 'version'>,
  answers: ReadonlyMap<string, string>,
): Standing {
  if (!edit) return { at: 'none' }
  if (edit.command !== undefined) {
    const answer = answers.get(edit.command)
    if (answer === undefined) return { at: 'sent' }
    return answer === '' ? { at: 'none' } : { at: 'refused', why: answer }
  }
  return { at: document.version > edit.version ? 'behind' : 'edited' }
}
