import { useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react'
import { Sheet } from './Sheet.tsx'

/**
 * What is to be read before a decision, in one part that scrolls. While more follows, a fade says how many lines, and buttons
 * go on by a page, for those who can't scroll, or show it on the whole screen. `onSeen` is told once the end was on screen
 * (C11). `title`: of that screen.
 */
export function Whole({
  title,
  children,
  onSeen,
}: {
  title: string
  children: ReactNode
  onSeen: () => void
}): ReactElement {
  const [full, setFull] = useState(false)
  const close = (): void => setFull(false)
  if (!full) {
    return (
      <Scroller onSeen={onSeen} onFull={() => setFull(true)}>
        {children}
      </Scroller>
    )
  }
  return (
    <Sheet title={title} full onClose={close}>
      <Scroller onSeen={onSeen}>{children}</Scroller>
      <div className="sheet-actions">
        <button type="button" className="button" onClick={close}>
          Close
        </button>
      </div>
    </Sheet>
  )
}

function Scroller({
  children,
  onSeen,
  onFull,
}: {
  children: ReactNode
  onSeen: () => void
  onFull?: () => void
}): ReactElement {
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
        <div className="whole-more">
          <button type="button" onClick={goOn}>
            <span>{lines === 1 ? '1 more line' : `${lines} more lines`}</span>
          </button>
          {onFull && (
            <button type="button" onClick={onFull}>
              <span>Full screen</span>
            </button>
          )}
        </div>
      )}
    </div>
  )
}

/** Height of the mark; it covers that much of what is in sight. */
const MARK_PX = 44

/** Lines of the text whose end is below what is in sight; of one line alone, and of prose, the rows that it takes here. */
function linesBelow(scroller: HTMLElement | null): number {
  if (!scroller) return 0
  const below_px = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
  // Sizes are rounded, each on its own.
  if (below_px <= 1) return 0
  const text = scroller.querySelector('pre, .prose') ?? scroller
  const rows = Math.ceil(below_px / (Number.parseFloat(getComputedStyle(text).lineHeight) || 20))
  const lines = sourceLinesBelow(text, scroller.getBoundingClientRect().bottom)
  return lines > 1 ? lines : rows
}

function sourceLinesBelow(text: Element, bottom: number): number {
  const code = text.querySelector('code')
  if (!code) return 0
  // A change has an element for each line; a command is one text.
  if (code.childElementCount > 0) {
    return countAfter(code.children.length, (i) => bottomOf(code.children[i]) > bottom)
  }
  const node = code.firstChild
  if (!node) return 0
  const ends = [...(node.nodeValue ?? '').matchAll(/\n|$/g)].map(({ index }) => index)
  const range = document.createRange()
  return countAfter(ends.length, (i) => {
    const end = ends[i] ?? 0
    range.setStart(node, Math.max(0, end - 1))
    range.setEnd(node, end)
    return bottomOf(range) > bottom
  })
}

const bottomOf = (part: Element | Range | undefined): number => part?.getBoundingClientRect().bottom ?? 0

/** How many of `count` are below, when all after the first that is are: by halving, because measuring each takes long. */
function countAfter(count: number, isBelow: (i: number) => boolean): number {
  let from = 0
  let to = count
  while (from < to) {
    const middle = (from + to) >> 1
    if (isBelow(middle)) to = middle
    else from = middle + 1
  }
  return count - from
}
