import type { ReactElement } from 'react'
import { Icon } from './icons.tsx'
import { Markdown } from './Markdown.tsx'

/** About three lines of a phone: shorter ones show whole. */
const SHORT_CHARS = 120

/** What the model said while it thought: dimmed, since it is not the answer; a long one is one line that opens. */
export function Thought({
  text,
  open,
  onToggle,
}: {
  text: string
  open: boolean
  onToggle: () => void
}): ReactElement {
  const whole = (
    <div className="thought">
      <Markdown text={text} />
    </div>
  )
  const isLong = text.length > SHORT_CHARS || text.includes('\n')
  if (!isLong) {
    return (
      <>
        <span className="only-read">Thought: </span>
        {whole}
      </>
    )
  }
  return (
    <>
      <button type="button" className="thought-line" aria-expanded={open} onClick={onToggle}>
        <span className="only-read">Thought: </span>
        <span className="ellipsis">{open ? 'Thought' : firstLine(text)}</span>
        <Icon name={open ? 'down' : 'right'} size={16} />
      </button>
      {open && whole}
    </>
  )
}

/** Without the marks of Markdown, which one line can't show. */
function firstLine(text: string): string {
  const [line = ''] = text.split('\n', 1)
  return line.replace(/^#+\s+|[*`]+/g, '')
}
