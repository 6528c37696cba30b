import { useMemo, useState, type ReactElement } from 'react'
import { VList } from 'virtua'
import { CopyButton } from './Code.tsx'

const LINES_SHOWN = 12
/** Above this the lines are virtual: a page of five thousand freezes a phone (F64). */
const LINES_PLAIN_MAX = 400

/** Text of any length: its first lines, then all of it on demand. */
export function Output({ text, label }: { text: string; label: string }): ReactElement {
  const [all, setAll] = useState(false)
  const lines = useMemo(() => text.replace(/\n$/, '').split('\n'), [text])
  const more = lines.length - LINES_SHOWN
  if (all && lines.length > LINES_PLAIN_MAX) {
    return (
      <figure className="code output">
        <VList className="long" role="region" aria-label={label} tabIndex={0} data={lines}>
          {(line, i) => (
            <div key={i} className="line mono">
              {line === '' ? ' ' : line}
            </div>
          )}
        </VList>
        <CopyButton text={text} />
      </figure>
    )
  }
  const shown = all || more <= 1 ? lines : lines.slice(0, LINES_SHOWN)
  return (
    <figure className="code output">
      <pre className="wrap" tabIndex={0} role="region" aria-label={label}>
        <code>{shown.join('\n')}</code>
      </pre>
      <CopyButton text={text} />
      {shown.length < lines.length && (
        <button type="button" className="button bare" onClick={() => setAll(true)}>
          Show all {lines.length.toLocaleString('en')} lines
        </button>
      )}
    </figure>
  )
}
