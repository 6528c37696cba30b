import type { ReactElement } from 'react'
import type { Waiting } from '../net/live.ts'
import type { OutboxItem } from '../store/outbox.ts'

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
  onDiscard: (id: string, text: string) => void
}): ReactElement | null {
  const own = new Set(items.map((item) => item.id))
  const others = waiting.filter((other) => !own.has(other.id))
  if (items.length + others.length === 0) return null
  return (
    <ul role="list" className="queue" aria-label="Queued">
      {others.map(({ id, text }) => (
        <li key={id}>
          <p className={ended ? undefined : 'ellipsis'}>{text}</p>
          <p className="small quiet">{ended ? NOT_TAKEN : 'Waits for the agent'}</p>
        </li>
      ))}
      {items.map((item) => {
        const text = item.shown.as === 'prompt' ? item.shown.text : NAMES[item.shown.as]
        return (
          <li key={item.id} className={item.state}>
            <p className={ended ? undefined : 'ellipsis'}>{text}</p>
            <p className={item.state === 'refused' ? 'small problem' : 'small quiet'}>
              {stateWords(item, connected, busy, ended, removed)}
            </p>
            {item.state === 'refused' && (
              <div className="queue-actions">
                {!ended && removed === undefined && (
                  <button type="button" className="button bare" onClick={() => onRetry(item.id)}>
                    Try again
                  </button>
                )}
                <button type="button" className="button bare" onClick={() => onDiscard(item.id, text)}>
                  {item.shown.as === 'prompt' ? 'Back to draft' : 'Discard'}
                </button>
              </div>
            )}
          </li>
        )
      })}
    </ul>
  )
}

const NOT_TAKEN = 'Not taken: the session has ended'

export const NAMES = { decision: 'Decision', move: 'Move', stop: 'Stop', hidden: 'New session' } as const

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
      return busy ? 'Waits for the agent' : 'Waits for a runner'
    case 'refused':
      return item.error?.message ?? 'The relay refused it.'
  }
}
