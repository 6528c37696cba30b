import { explain } from '@baton/shared/errors.ts'
import type { ReactElement } from 'react'
import type { NewOutboxItem } from '../store/outbox.ts'
import { NAMES } from './Queue.tsx'

/** A tap that this browser could not store: it was not sent, and nothing else will try it. */
export interface UnkeptTap {
  item: NewOutboxItem
  error: unknown
}

/** Says that a tap came to nothing, and offers it again under the same id (F32). */
export function Unkept({
  tap: { item, error },
  onRetry,
  onDiscard,
}: {
  tap: UnkeptTap
  onRetry: () => void
  onDiscard: () => void
}): ReactElement {
  const what = item.shown.as === 'prompt' ? 'Message' : NAMES[item.shown.as]
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

/** What happened and what to do when IndexedDB refuses: it is full, or was closed under the page. */
export function unkeptWords(error: unknown, what = 'Not kept'): string {
  return `${what}: this browser could not store it. Free some space or reload the page, then try again. (${explain(error)})`
}
