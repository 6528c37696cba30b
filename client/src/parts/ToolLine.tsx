import { useCallback, useState, type ReactElement } from 'react'
import { revealed, targetOf, verbOf } from '@baton/shared/view/call.ts'
import type { ToolItem } from '@baton/shared/view/items.ts'
import { readToolResult } from '@baton/shared/view/results.ts'
import { duration } from '@baton/shared/view/units.ts'
import { allowanceWords } from '@baton/shared/view/words.ts'
import { BlobText } from './BlobText.tsx'
import { CallView } from './CallView.tsx'
import { UnifiedDiff } from './Diff.tsx'
import { Icon } from './icons.tsx'
import { Output } from './Output.tsx'
import { SentPhotos } from './Photos.tsx'

type Decided = NonNullable<NonNullable<ToolItem['approval']>['decided']>

/** One line for a call; opens to all that went in and came out. */
export function ToolLine({
  item,
  output,
  open,
  onToggle,
}: {
  item: ToolItem
  /** What it has put out so far, while it runs; its newest lines show. */
  output?: string | undefined
  open: boolean
  onToggle: () => void
}): ReactElement {
  const target = targetOf(item.name, item.input)
  return (
    <div className={`tool ${item.state}`}>
      <button type="button" className="tool-line" aria-expanded={open} onClick={onToggle}>
        <StateMark state={item.state} />
        <span className="verb">{verbOf(item.name, item.state, item.input)}</span>
        <code className="ellipsis target">{target}</code>
        <span className="after small quiet">{afterWords(item)}</span>
      </button>
      {output !== undefined && <LiveOutput text={output} />}
      {open && <Inside item={item} />}
    </div>
  )
}

const LIVE_LINES = 5
/** A line of a progress bar can be very long, and more than this is never seen. */
const LIVE_CHARS_MAX = 4_000

/** The end of what a running call puts out. Not announced: it may change many times a second. */
function LiveOutput({ text }: { text: string }): ReactElement {
  const lines = text.slice(-LIVE_CHARS_MAX).trimEnd().split('\n').slice(-LIVE_LINES)
  // A carriage return begins the line anew, as on a terminal.
  const shown = lines.map((line) => line.slice(line.trimEnd().lastIndexOf('\r') + 1))
  return (
    <pre className="live-output" role="region" aria-label="Output so far">
      {revealed(shown.join('\n'))}
    </pre>
  )
}

function StateMark({ state }: { state: ToolItem['state'] }): ReactElement {
  switch (state) {
    case 'ok':
      return <Mark icon="check" words="done" />
    case 'error':
      return <Mark icon="warning" words="failed" />
    case 'denied':
    case 'stopped':
      return <Mark icon="cross" words={state} />
    case 'interrupted':
      return <Mark icon="warning" words="interrupted" />
    case 'approval':
    case 'approved':
      return <Mark icon="clock" words={state === 'approval' ? 'waits for you' : 'approved'} />
    case 'running':
      return (
        <span className="state">
          <span className="pulse" />
          <span className="only-read">running: </span>
        </span>
      )
  }
}

function Mark({
  icon,
  words,
}: {
  icon: 'check' | 'warning' | 'cross' | 'clock'
  words: string
}): ReactElement {
  return (
    <span className="state">
      <Icon name={icon} size={16} />
      <span className="only-read">{words}: </span>
    </span>
  )
}

/** What stands at the end of the line: how it ended, how long it took. */
function afterWords(item: ToolItem): string {
  switch (item.state) {
    case 'approval':
      return 'waits for you'
    case 'denied':
      // By a rule or the mode when no device did.
      return item.approval?.decided?.device === '' ? 'not allowed' : 'denied'
    case 'stopped':
      return 'stopped'
    case 'interrupted':
      return 'interrupted'
    case 'running':
      return item.attempt > 1 ? `attempt ${item.attempt}` : ''
    case 'approved':
      return ''
    case 'ok':
    case 'error': {
      const exit = item.result?.detail?.['exit_code'] ?? item.result?.detail?.['exit']
      const failed = typeof exit === 'number' && exit !== 0 ? `exit ${exit}` : ''
      const took = item.duration_ms === undefined ? '' : duration(item.duration_ms)
      // How long starting it took says nothing of the job.
      if (item.name === 'bash' && item.result?.detail?.['job'] !== undefined) return 'as a job'
      return [failed, took].filter(Boolean).join(' · ')
    }
  }
}

function Inside({ item }: { item: ToolItem }): ReactElement {
  const diff = item.result?.detail?.['diff']
  const why = whyWords(item)
  return (
    <div className="tool-inside">
      {typeof diff === 'string' && diff !== '' ? (
        <UnifiedDiff path={targetOf(item.name, item.input)} text={diff} />
      ) : (
        <CallView name={item.name} input={item.input} />
      )}
      {why !== '' && <p className="small quiet">{why}</p>}
      {item.error && <p className="small problem">{errorWords(item)}</p>}
      {item.error?.printed !== undefined && <Output text={item.error.printed} label="Output until then" />}
      {item.result && item.result.text !== '' && !saidByDiff(item) && (
        <Output text={item.result.text} label="Output" />
      )}
      {item.result?.images && <SentPhotos images={item.result.images} name="Picture" />}
      {item.blob && (
        <BlobText blob={item.blob} read={(json) => readToolResult(json).text}>
          {(text) => <Output text={text} label="Output" />}
        </BlobText>
      )}
    </div>
  )
}

/** By what it was allowed where nobody was asked; else what was said with the decision. */
function whyWords({ allowed, approval }: ToolItem): string {
  if (allowed) return `Allowed by ${allowanceWords(allowed)}; nobody was asked.`
  return approval?.decided ? decisionWords(approval.decided) : ''
}

function decisionWords({ approved, device, note }: Decided): string {
  if (device !== '') return note === undefined ? '' : `“${note}”`
  if (note !== undefined) return note
  return approved ? 'Allowed by a rule or the mode; nobody was asked.' : 'Not allowed by a rule or the mode.'
}

/** `Edited prices.ts: one replacement.` adds nothing to the change itself. */
function saidByDiff({ name, state }: ToolItem): boolean {
  return state === 'ok' && (name === 'edit' || name === 'write')
}

function errorWords({ state, error }: ToolItem): string {
  if (state === 'interrupted') {
    return 'The runner ended while this ran; it may have run, wholly or in part. It was not started again.'
  }
  return error?.message ?? ''
}

/** Which lines a person has opened; survives a line's leaving the screen. */
export function useOpenLines(): { isOpen: (id: string) => boolean; toggle: (id: string) => void } {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const toggle = useCallback(
    (id: string) => setOpen((before) => before.symmetricDifference(new Set([id]))),
    [],
  )
  return { isOpen: (id) => open.has(id), toggle }
}
