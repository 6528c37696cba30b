import type { ReactElement } from 'react'
import type { NewOutboxItem } from '../store/outbox.ts'
import { NAMES } from './Queue.tsx'
import { unkeptWords } from './unkept-words.ts'

/** What a tap meant and this browser could not store: it was not sent, and nothing else will try it. */
export interface UnkeptTap {
  items: readonly NewOutboxItem[]
  error: unknown
}

/** Says that a tap came to nothing, and offers it again under the same id (F32). */
export function Unkept({
  tap: { items, error },
  onRetry,
  onDiscard,
}: {
  tap: UnkeptTap
  onRetry: () => void
  onDiscard: () => void
}): ReactElement {
  const as = items.at(-1)?.shown.as ?? 'hidden'
  const what = as === 'prompt' ? 'Message' : NAMES[as]
  return (
    <div className="unkept" role="alert">
      <p className="small problem">{unkeptWords(error, `${what} not kept`)}</p>
      <div className="queue-actions">
        <button type="button" className="button bare" onClick={onDiscard}>
          Discard
        </button>
        <button type="button" className="button bare" onClick={onRetry}>
          Try again
        </button>
      </div>
    </div>
  )
}
