import { useLayoutEffect, useRef, useState, type ReactElement } from 'react'
import { Code } from './Code.tsx'
import { Markdown } from './Markdown.tsx'

/**
 * A plan as prose. What Markdown leaves unseen (where a link leads, a definition, a cell too many) must not be approved unseen:
 * when a letter of the text does not show, the text as it was written shows as well (C11).
 */
export function Plan({ text }: { text: string }): ReactElement {
  const prose = useRef<HTMLDivElement>(null)
  const [hides, setHides] = useState(false)
  useLayoutEffect(() => {
    setHides(lettersOf(prose.current?.textContent ?? '') !== lettersOf(text))
  }, [text])
  return (
    <>
      <div className="plan" role="region" aria-label="Plan" tabIndex={0} ref={prose}>
        <Markdown text={text} />
      </div>
      {hides && <Code text={text} label="Plan as it was written" wrap />}
    </>
  )
}

function lettersOf(text: string): string {
  return text.replace(/\P{L}/gu, '')
}
