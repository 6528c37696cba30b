import { useMemo, type ReactElement } from 'react'
import { diffLines } from '../store/diff.ts'

const SIGN = { same: ' ', added: '+', removed: '-' } as const

/** A line diff with signs, so that colour is not the only carrier; never cut. */
export function Diff({ path, before, after }: { path: string; before: string; after: string }): ReactElement {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  return (
    <figure className="code diff">
      <figcaption className="mono">{path}</figcaption>
      <pre tabIndex={0} role="region" aria-label={`Changes in ${path}`}>
        <code>
          {lines.map((line, i) => (
            <span key={i} className={line.change}>
              <span className="sign">{SIGN[line.change]}</span>
              {line.text}
              {'\n'}
            </span>
          ))}
        </code>
      </pre>
    </figure>
  )
}

/** A diff that a tool made, in unified form. */
export function UnifiedDiff({ text }: { text: string }): ReactElement {
  return (
    <figure className="code diff">
      <pre tabIndex={0} role="region" aria-label="Changes">
        <code>
          {text.split('\n').map((line, i) => (
            <span
              key={i}
              className={line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same'}
            >
              {line}
              {'\n'}
            </span>
          ))}
        </code>
      </pre>
    </figure>
  )
}
