import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactElement } from 'react'
import { VList } from 'virtua'
import { Icon } from './icons.tsx'
import { useOpenLines } from './ToolLine.tsx'
import { TranscriptRow, type Row } from './TranscriptRow.tsx'

/** Pixels from the end that still count as being there. */
const END_PX = 24

/** The transcript: virtual, and stuck to its end only while the person is there (F64). */
export function TranscriptList({
  rows,
  nameOf,
  sent,
}: {
  rows: readonly Row[]
  nameOf: (device: string) => string
  /** How many prompts were sent from here: with each the view goes to the end, where it will appear. */
  sent: number
}): ReactElement {
  const frame = useRef<HTMLDivElement>(null)
  const stuck = useRef(true)
  const last_offset = useRef(0)
  /** A finger, wheel or key is moving the list. */
  const by_hand = useRef(false)
  const [away, setAway] = useState(false)
  const { isOpen, toggle } = useOpenLines()

  // Not the list's own scrolling by index: that goes on until every row is measured, and would fight with a hand.
  const follow = useCallback((): void => {
    const scroller = frame.current?.firstElementChild
    if (!scroller) return
    if (stuck.current) scroller.scrollTop = scroller.scrollHeight
    setAway(!stuck.current && !isAtEnd(scroller))
  }, [])

  useLayoutEffect(() => {
    stuck.current = true
  }, [sent])

  useLayoutEffect(follow, [rows, sent, follow])

  // The keyboard or an approval takes room from the list: what was at the end stays there.
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const observer = new ResizeObserver(follow)
    observer.observe(element)
    return () => observer.disconnect()
  }, [follow])

  function onScroll(offset: number): void {
    const scroller = frame.current?.firstElementChild
    if (!scroller) return
    // The browser too moves the list upwards, when what is below it gives room back: only a person's hand lets go.
    if (isAtEnd(scroller)) stuck.current = true
    else if (by_hand.current && offset < last_offset.current) stuck.current = false
    last_offset.current = offset
    setAway(!stuck.current)
  }

  const byHand = (): void => {
    by_hand.current = true
  }

  const onToggle = useCallback(
    (id: string): void => {
      // What a person opens stays where it is.
      stuck.current = false
      toggle(id)
    },
    [toggle],
  )

  return (
    <div
      className="transcript"
      ref={frame}
      onWheel={byHand}
      onTouchMove={byHand}
      onPointerDown={byHand}
      onKeyDown={byHand}
    >
      <VList
        data={rows}
        bufferSize={600}
        onScroll={onScroll}
        onScrollEnd={() => {
          by_hand.current = false
        }}
        onResize={follow}
        className="transcript-list"
        tabIndex={-1}
      >
        {(row) => (
          <div key={row.id} className="transcript-row">
            <TranscriptRow row={row} open={isOpen(row.id)} onToggle={onToggle} nameOf={nameOf} />
          </div>
        )}
      </VList>
      {away && (
        <button
          type="button"
          className="to-end"
          aria-label="Latest"
          onClick={() => {
            stuck.current = true
            follow()
          }}
        >
          <Icon name="down" />
        </button>
      )}
    </div>
  )
}

function isAtEnd(scroller: Element): boolean {
  return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop < END_PX
}
