import { useEffect, useRef, useState, type ReactElement } from 'react'
import type { Approval, Item } from '../store/items.ts'
import type { Transcript } from '../store/transcript.ts'

/** Says, politely, that something has arrived: answers, questions, handoffs. Not what was there when the screen opened. */
export function Announcer({
  transcript,
  ready,
  approvals,
  nameOf,
}: {
  transcript: Transcript
  ready: boolean
  approvals: readonly Approval[]
  nameOf: (device: string) => string
}): ReactElement {
  const [words, setWords] = useState('')
  const said = useRef<number | undefined>(undefined)
  const asked = useRef(new Set<number>())
  useEffect(() => {
    if (!ready) return
    const from = said.current ?? transcript.items.length
    said.current = transcript.items.length
    const fresh = transcript.items.slice(from).flatMap((item) => itemWords(item, nameOf))
    const questions = approvals.filter(({ effect }) => !asked.current.has(effect))
    for (const { effect } of questions) asked.current.add(effect)
    const all = [...fresh, ...questions.map(() => 'Your approval is needed')]
    if (all.length > 0) setWords(all.join('. '))
  }, [transcript, ready, approvals, nameOf])
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
