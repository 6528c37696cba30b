import { useState, type ReactElement, type ReactNode } from 'react'
import type { Waiting } from '../net/live.ts'
import { isHere, type OutboxItem } from '../store/outbox.ts'

/** Prompts that are not in the transcript yet: from this device, then those that other devices have sent. */
export function Queue({
  items,
  waiting,
  connected,
  busy,
  ended,
  removed,
  onRetry,
  onDiscard,
}: {
  items: readonly OutboxItem[]
  waiting: readonly Waiting[]
  connected: boolean
  /** The agent is at work; what waits, waits for it. */
  busy: boolean
  /** The session takes nothing more: what waits is shown whole, to be copied. */
  ended: boolean
  /** Why this device sends nothing any more. */
  removed: string | undefined
  onRetry: (id: string) => void
  onDiscard: (id: string) => void
}): ReactElement | null {
  const own = new Set(items.map((item) => item.id))
  const others = waiting.filter((other) => !own.has(other.id))
  // What goes in the next moment is not offered back: the button would be gone before it can be hit.
  const held = !connected || items.some(({ state }) => state === 'refused')
  if (items.length + others.length === 0) return null
  return (
    <ul role="list" className="queue" aria-label="Queued">
      {others.map(({ id, text, photos, steer }) => (
        <Line
          key={id}
          text={withPhotos(text, photos)}
          words={ended ? NOT_TAKEN : waitWords(busy, steer)}
          more={ended ? '' : AT_RELAY}
          whole={ended}
        />
      ))}
      {items.map((item) => {
        const text = item.shown.as === 'prompt' ? wordsOf(item) : NAMES[item.shown.as]
        return (
          <Line
            key={item.id}
            state={item.state}
            text={text}
            words={stateWords(item, connected, busy, ended, removed)}
            more={moreWords(item, ended)}
            whole={ended}
          >
            {(item.state === 'refused' || (isHere(item) && held)) && (
              <div className="queue-actions">
                {item.state === 'refused' && !ended && removed === undefined && (
                  <button type="button" className="button bare" onClick={() => onRetry(item.id)}>
                    Try again
                  </button>
                )}
                <button type="button" className="button bare" onClick={() => onDiscard(item.id)}>
                  {item.shown.as === 'prompt' ? 'Back to draft' : 'Discard'}
                </button>
              </div>
            )}
          </Line>
        )
      })}
    </ul>
  )
}

/** Its beginning, and what it waits for; a tap shows the whole and what can be done about it. */
function Line({
  state,
  text,
  words,
  more,
  whole,
  children,
}: {
  state?: OutboxItem['state']
  text: string
  words: string
  more: string
  whole: boolean
  children?: ReactNode
}): ReactElement {
  const [open, setOpen] = useState(false)
  return (
    <li className={state}>
      <button
        type="button"
        className="queue-line"
        aria-expanded={open || whole}
        onClick={() => setOpen(!open)}
      >
        <span className={open || whole ? 'queue-text' : 'queue-text ellipsis'}>{text}</span>
        <span className={state === 'refused' ? 'small problem' : 'small quiet'}>{words}</span>
        {open && more !== '' && <span className="small quiet">{more}</span>}
      </button>
      {children}
    </li>
  )
}

const AT_RELAY = 'The relay has it: it can’t be changed or taken back any more.'
const MAYBE_AT_RELAY = 'It may have reached the relay already, so it can’t be taken back.'

function moreWords(item: OutboxItem, ended: boolean): string {
  if (ended || isHere(item)) return ''
  return item.state === 'acknowledged' ? AT_RELAY : MAYBE_AT_RELAY
}

const NOT_TAKEN = 'Not taken: the session has ended'

export const NAMES = {
  decision: 'Decision',
  move: 'Move',
  stop: 'Stop',
  mode: 'Change of mode',
  settings: 'Change of settings',
  compact: 'Compact now',
  document: 'Change of a note',
  hidden: 'New session',
} as const

function wordsOf({ shown, pictures = [] }: OutboxItem): string {
  return withPhotos(shown.as === 'prompt' ? shown.text : '', pictures.length)
}

function withPhotos(text: string, count: number): string {
  const photos = count === 0 ? '' : count === 1 ? '1 photo' : `${count} photos`
  return [photos, text].filter(Boolean).join(' · ')
}

/** What a prompt that the relay has waits for. */
function waitWords(busy: boolean, steer: boolean): string {
  if (!busy) return 'Waits for a runner'
  return steer ? 'Reaches the agent at its next step' : 'Waits for the end of the turn'
}

function stateWords(
  item: OutboxItem,
  connected: boolean,
  busy: boolean,
  ended: boolean,
  removed: string | undefined,
): string {
  switch (item.state) {
    case 'queued':
    case 'sent':
      if (removed !== undefined) return `Not sent. ${removed}`
      return connected ? 'Sending…' : 'Kept here; sent when the connection is back'
    case 'acknowledged':
      if (ended) return NOT_TAKEN
      if (item.shown.as !== 'prompt') return busy ? 'Waits for the agent' : 'Waits for a runner'
      return waitWords(busy, item.shown.steer ?? false)
    case 'refused':
      return item.error?.message ?? 'The relay refused it.'
  }
}
