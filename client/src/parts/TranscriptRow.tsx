import { memo, type ReactElement } from 'react'
import type { Handoff, Item } from '@baton/shared/view/items.ts'
import { readModelText } from '@baton/shared/view/results.ts'
import type { Moving } from '@baton/shared/view/transcript.ts'
import { handoffWords, movingWords } from '@baton/shared/view/words.ts'
import { BlobText } from './BlobText.tsx'
import { Icon } from './icons.tsx'
import { Markdown } from './Markdown.tsx'
import { ToolLine } from './ToolLine.tsx'

/** What stands at the end of a transcript while it goes on. */
export type TailRow =
  | { kind: 'live'; id: string; text: string }
  | { kind: 'thinking'; id: string }
  | { kind: 'moving'; id: string; moving: Moving }
  | { kind: 'away'; id: string; runner: string }

export type Row = Item | TailRow

export const TranscriptRow = memo(function TranscriptRow({
  row,
  open,
  onToggle,
  nameOf,
}: {
  row: Row
  open: boolean
  onToggle: (id: string) => void
  nameOf: (device: string) => string
}): ReactElement {
  switch (row.kind) {
    case 'prompt':
      return (
        <div className="line-prompt">
          <span className="only-read">You: </span>
          <p>{row.text}</p>
        </div>
      )
    case 'text':
      return (
        <div className="line-text">
          {row.blob ? (
            <BlobText blob={row.blob} read={readModelText}>
              {(text) => <Markdown text={text} />}
            </BlobText>
          ) : (
            <Markdown text={row.text} />
          )}
          {row.repeated > 0 && (
            <p className="small quiet">
              {row.repeated === 1 ? 'One request was' : `${row.repeated} requests were`} cut off and asked
              again.
            </p>
          )}
        </div>
      )
    case 'live':
      return (
        <div className="line-text live">
          <Markdown text={row.text} />
        </div>
      )
    case 'thinking':
      return (
        <p className="line-quiet">
          <span className="pulse" /> Thinking
        </p>
      )
    case 'tool':
      return <ToolLine item={row} open={open} onToggle={() => onToggle(row.id)} />
    case 'handoff':
      return <HandoffLine handoff={row} nameOf={nameOf} />
    case 'event':
      return (
        <p className={row.tone === 'error' ? 'line-quiet problem' : 'line-quiet'}>
          {row.tone === 'error' && <Icon name="warning" size={16} />}
          <span>{row.text}</span>
        </p>
      )
    case 'stop':
      return <p className="line-quiet">Stopped from {nameOf(row.device)}.</p>
    case 'moving':
      return (
        <p className="line-quiet">
          <span className="pulse" /> {movingWords(row.moving)}
        </p>
      )
    case 'away':
      return <p className="line-quiet">{row.runner} went away. The session waits for a runner.</p>
    case 'unreadable':
      return (
        <p className="line-quiet">
          <Icon name="lock" size={16} />
          <span>An entry that can’t be read here: damaged, or of a newer version of Baton.</span>
        </p>
      )
  }
})

function HandoffLine({
  handoff,
  nameOf,
}: {
  handoff: Handoff
  nameOf: (device: string) => string
}): ReactElement {
  return (
    <div className="line-handoff" role="separator" aria-label={handoffWords(handoff, nameOf)}>
      <span className="small">{handoffWords(handoff, nameOf)}</span>
    </div>
  )
}
