import { useEffect, useRef, useState, type ReactElement } from 'react'
import type { Approval, Item } from '@baton/shared/view/items.ts'
import { hear, NOTHING_HEARD } from '../store/hearing.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'

/** Says, politely, that something has arrived: answers, questions, handoffs. Not what was there when the screen opened. */
export function Announcer({
  transcript,
  tail,
  approvals,
  nameOf,
}: {
  transcript: Transcript
  /** Seq of the session's last entry as the relay lists it. */
  tail: number | undefined
  approvals: readonly Approval[]
  nameOf: (device: string) => string
}): ReactElement {
  const [words, setWords] = useState('')
  const heard = useRef(NOTHING_HEARD)
  useEffect(() => {
    const fresh = hear(heard.current, transcript, approvals, tail)
    heard.current = fresh.heard
    const all = [
      ...fresh.items.flatMap((item) => itemWords(item, nameOf)),
      ...fresh.approvals.map(() => 'Your approval is needed'),
    ]
    if (all.length > 0) setWords(all.join('. '))
  }, [transcript, tail, approvals, nameOf])
  return (
    <div className="only-read" aria-live="polite">
      {words}
    </div>
  )
}

function itemWords(item: Item, nameOf: (device: string) => string): string[] {
  if (item.kind === 'text') return ['An answer has arrived']
  if (item.kind === 'handoff') return [`The session goes on at ${nameOf(item.to)}`]
  if (item.kind === 'event' && item.tone === 'error') return [item.text]
  return []
}
