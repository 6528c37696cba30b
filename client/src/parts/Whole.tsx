import { useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react'

/**
 * What is to be read before a decision, in one part that scrolls. While more follows, a fade and a button say how many lines;
 * the button goes on by a page, for those who can't scroll. `onSeen` is told once the end was on screen (C11).
 */
export function Whole({ children, onSeen }: { children: ReactNode; onSeen: () => void }): ReactElement {
  const scroller = useRef<HTMLDivElement>(null)
  const end = useRef<HTMLSpanElement>(null)
  const seen = useRef(onSeen)
  seen.current = onSeen
  const [lines, setLines] = useState(0)

  useEffect(() => {
    if (!scroller.current || !end.current) return undefined
    // The screen, not the scroller: what holds the card scrolls, too, and may hide the end.
    const watch = new IntersectionObserver((changes) => {
      if (changes.some(({ isIntersecting }) => isIntersecting)) seen.current()
    })
    watch.observe(end.current)
    const measure = new ResizeObserver(() => setLines(linesBelow(scroller.current)))
    for (const element of [scroller.current, ...scroller.current.children]) measure.observe(element)
    return () => {
      watch.disconnect()
      measure.disconnect()
    }
  }, [])

  function goOn(): void {
    const element = scroller.current
    if (!element) return
    element.scrollBy({ top: element.clientHeight - MARK_PX })
    // The button goes at the end; whoever came by keyboard stays where they read.
    if (linesBelow(element) === 0) element.focus({ preventScroll: true })
  }

  return (
    <div
      className="whole"
      ref={scroller}
      tabIndex={-1}
      onScroll={() => setLines(linesBelow(scroller.current))}
    >
      {children}
      <span className="whole-end" ref={end} aria-hidden />
      {lines > 0 && (
        <button type="button" className="whole-more" onClick={goOn}>
          <span>{lines === 1 ? '1 more line' : `${lines} more lines`}</span>
        </button>
      )}
    </div>
  )
}

/** Height of the mark; it covers that much of what is in sight. */
const MARK_PX = 44

function linesBelow(scroller: HTMLElement | null): number {
  if (!scroller) return 0
  const below_px = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
  // Sizes are rounded, each on its own.
  if (below_px <= 1) return 0
  const text = scroller.querySelector('pre, .prose') ?? scroller
  return Math.ceil(below_px / (Number.parseFloat(getComputedStyle(text).lineHeight) || 20))
}
