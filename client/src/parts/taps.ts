import type { Mode } from '@baton/shared/guest.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import { useState } from 'react'
import { decision, document, mode, prompt, type Said } from '../net/commands.ts'
import type { NewOutboxItem, OutboxItem } from '../store/outbox.ts'
import type { Decided } from './ApprovalCard.tsx'
import { usePaired } from './hooks.ts'
import type { UnkeptTap } from './Unkept.tsx'

/** What a person does in a session: each tap becomes items of the outbox. */
export interface Taps {
  /** The last one, when this browser could not store it. */
  unkept: UnkeptTap | undefined
  tap: (...items: NewOutboxItem[]) => void
  forget: () => void
  /** Clears the draft in the same write. Rejects when it can't be stored. */
  send: (said: Said) => Promise<void>
  /** Resolves with the id of what was queued. */
  saveNote: (change: Parameters<typeof document>[2]) => Promise<string>
  changeMode: (to: Mode) => void
  decide: (approval: Approval, decided: Decided) => void
  /** The mode that will hold once all that is queued counts, and whether a change is on its way. */
  mode: Mode | undefined
  isChangingMode: boolean
}

export function useTaps(sid: string, transcript: Transcript, outbox: readonly OutboxItem[]): Taps {
  const { hub } = usePaired()
  const [unkept, setUnkept] = useState<UnkeptTap | undefined>()
  const key = hub.keyOf(sid)
  const modes_asked = outbox.flatMap(({ shown, state }) =>
    shown.as === 'mode' && state !== 'refused' ? [shown.mode] : [],
  )
  const shown_mode = modes_asked.at(-1) ?? transcript.mode

  function tap(...items: NewOutboxItem[]): void {
    setUnkept(undefined)
    hub.outbox.enqueue(items).catch((error: unknown) => setUnkept({ items, error }))
  }
  function modeChange(to: Mode, plan?: number): NewOutboxItem {
    // Those on the way count before this one does.
    return mode(key, hub.device, sid, to, transcript.revision + modes_asked.length, plan)
  }
  return {
    ...{ unkept, tap, mode: shown_mode, isChangingMode: modes_asked.length > 0 },
    forget: () => setUnkept(undefined),
    send: async (said) => {
      await hub.outbox.enqueue([prompt(key, sid, said)], sid)
    },
    saveNote: async (change) => {
      const item = document(key, sid, change)
      await hub.outbox.enqueue([item])
      return item.id
    },
    changeMode: (to) => tap(modeChange(to)),
    decide: (approval, { approved, always, note, mode: to }) => {
      const decided = decision(key, hub.device, sid, approval, approved, always, note)
      // The mode goes first: the agent goes on in it.
      tap(...(to === undefined || to === shown_mode ? [decided] : [modeChange(to, approval.effect), decided]))
    },
  }
}
