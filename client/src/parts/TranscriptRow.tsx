import { memo, useContext, type ReactElement } from 'react'
import type { EventItem, Handoff, Item, ToolItem } from '@baton/shared/view/items.ts'
import { readModelText } from '@baton/shared/view/results.ts'
import type { Moving, Retrying } from '@baton/shared/view/transcript.ts'
import { handoffWords, movingWords, repeatedWords, retryWords, todoOf } from '@baton/shared/view/words.ts'
import { AgainContext } from './again.ts'
import { BlobText } from './BlobText.tsx'
import { CopyButton } from './Code.tsx'
import { useNow } from './hooks.ts'
import { Icon } from './icons.tsx'
import { Markdown } from './Markdown.tsx'
import { SentPhotos } from './Photos.tsx'
import { Thought } from './Thought.tsx'
import { ToolLine } from './ToolLine.tsx'

/** What stands at the end of a transcript while it goes on. */
export type TailRow =
  | { kind: 'live'; id: string; text: string }
  | { kind: 'thinking'; id: string; thought?: string }
  | { kind: 'moving'; id: string; moving: Moving }
  | { kind: 'away'; id: string; runner: string }
  /** `heirs`: another runner may take the session over. */
  | { kind: 'silent'; id: string; runner: string; heirs: boolean }
  | { kind: 'retrying'; id: string; retry: Retrying }
  | { kind: 'again'; id: string }

/** A call that runs, with the newest lines of its output. */
export type RunningRow = ToolItem & { output: string }

export type Row = Item | RunningRow | TailRow

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
        <div className={row.waits ? 'line-prompt waits' : 'line-prompt'}>
          <span className="only-read">You: </span>
          {row.images && <SentPhotos images={row.images} />}
          {row.text !== '' && <p>{row.text}</p>}
          {row.waits && <p className="small quiet">Reaches the agent at its next step</p>}
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
          {row.repeated > 0 && <p className="small quiet">{repeatedWords(row.repeated)}</p>}
        </div>
      )
    case 'thought':
      return <Thought text={row.text} open={open} onToggle={() => onToggle(row.id)} />
    case 'live':
      return (
        <div className="line-text live">
          <Markdown text={row.text} />
        </div>
      )
    case 'thinking':
      return (
        <>
          <p className="line-quiet">
            <span className="pulse" /> Thinking
          </p>
          {/* Nothing to be read out: it is gone before that is done. */}
          {row.thought !== undefined && (
            <div className="live-thought" aria-hidden="true">
              <p>{row.thought}</p>
            </div>
          )}
        </>
      )
    case 'tool':
      return (
        <ToolLine
          item={row}
          output={'output' in row ? row.output : undefined}
          open={open}
          onToggle={() => onToggle(row.id)}
        />
      )
    case 'handoff':
      return <HandoffLine handoff={row} nameOf={nameOf} />
    case 'event':
      return <EventLine event={row} />
    case 'retrying':
      return <RetryLine retry={row.retry} />
    case 'again':
      return <AgainLine />
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
    case 'silent':
      return (
        <p className="line-quiet">
          {row.runner} does not answer.{' '}
          {row.heirs
            ? 'If it stays away, another runner takes over within seconds.'
            : 'The session goes on when it is back.'}
        </p>
      )
    case 'unreadable':
      return (
        <p className="line-quiet">
          <Icon name="lock" size={16} />
          <span>An entry that can’t be read here: damaged, or of a newer version of Baton.</span>
        </p>
      )
  }
})

/** How to see what was kept: the command that a runner names, or that goes with the branch that it names. */
export function compareIn(text: string): string | undefined {
  const [, branch] = /\b(?:git diff|on branch) (baton\/kept\/[\w-]+)/.exec(text) ?? []
  return branch === undefined ? undefined : `git diff ${branch}`
}

function EventLine({ event }: { event: EventItem }): ReactElement {
  if (event.divides) {
    return (
      <div className="line-handoff quiet" role="separator" aria-label={event.text}>
        <span className="small">{event.text}</span>
      </div>
    )
  }
  if (event.tone === 'quiet') {
    const command = compareIn(event.text)
    return (
      <p className="line-quiet">
        <span>{event.text}</span>
        {command !== undefined && <CopyButton text={command} what="the command" />}
      </p>
    )
  }
  return (
    <p className="line-quiet problem">
      <Icon name="warning" size={16} />
      <span>{[event.text, todoOf(event)].filter(Boolean).join(' ')}</span>
    </p>
  )
}

/** The model could not be asked; the next attempt, counted down. */
function RetryLine({ retry }: { retry: Retrying }): ReactElement {
  const now = useNow(1000)
  return (
    <p className="line-quiet">
      <span className="pulse" /> <span>{retryWords(retry, now)}</span>
    </p>
  )
}

/** After an error: the conversation is whole, and goes on when a person says so. */
function AgainLine(): ReactElement | null {
  const onAgain = useContext(AgainContext)
  if (!onAgain) return null
  return (
    <p className="line-again">
      <button type="button" className="button" onClick={onAgain}>
        Try again
      </button>
    </p>
  )
}

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
