import { useMemo, type ReactElement } from 'react'
import { diffLines } from '@baton/shared/view/diff.ts'

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
            </span>
          ))}
        </code>
      </pre>
    </figure>
  )
}

/** A diff that a tool made, in unified form; its file header says no more than `path`. */
export function UnifiedDiff({ path, text }: { path: string; text: string }): ReactElement {
  const lines = text.replace(/\n$/, '').split('\n')
  const first = Math.max(
    0,
    lines.findIndex((line) => line.startsWith('@@')),
  )
  return (
    <figure className="code diff">
      <figcaption className="mono">{path}</figcaption>
      <pre tabIndex={0} role="region" aria-label={`Changes in ${path}`}>
        <code>
          {lines.slice(first).map((line, i) => (
            <span key={i} className={classOf(line)}>
              {line}
            </span>
          ))}
        </code>
      </pre>
    </figure>
  )
}

function classOf(line: string): string {
  if (line.startsWith('@@')) return 'quiet'
  return line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same'
}
