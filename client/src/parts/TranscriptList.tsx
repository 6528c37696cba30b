import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactElement } from 'react'
import { VList, type VListHandle } from 'virtua'
import { Icon } from './icons.tsx'
import { useOpenLines } from './ToolLine.tsx'
import { TranscriptRow, type Row } from './TranscriptRow.tsx'

/** Pixels from the end that still count as being there. */
const END_PX = 24

/** The transcript: virtual, and stuck to its end only while the person is there (F64). */
export function TranscriptList({
  rows,
  nameOf,
}: {
  rows: readonly Row[]
  nameOf: (device: string) => string
}): ReactElement {
  const list = useRef<VListHandle>(null)
  const frame = useRef<HTMLDivElement>(null)
  const stuck = useRef(true)
  const last_offset = useRef(0)
  /** A finger, wheel or key is moving the list. */
  const by_hand = useRef(false)
  const [away, setAway] = useState(false)
  const { isOpen, toggle } = useOpenLines()

  const toEnd = useCallback((): void => {
    const count = rows.length
    if (count > 0) list.current?.scrollToIndex(count - 1, { align: 'end' })
  }, [rows.length])

  useLayoutEffect(() => {
    if (stuck.current) toEnd()
  }, [rows, toEnd])

  // The keyboard or an approval takes room from the list: what was at the end stays there.
  useEffect(() => {
    const element = frame.current
    if (!element) return
    const observer = new ResizeObserver(() => {
      if (stuck.current) toEnd()
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [toEnd])

  function onScroll(offset: number): void {
    const handle = list.current
    if (!handle) return
    const at_end = handle.scrollSize - handle.viewportSize - offset < END_PX
    // The browser too moves the list upwards, when what is below it gives room back: only the person's hand lets go.
    if (at_end) stuck.current = true
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
        ref={list}
        data={rows}
        bufferSize={600}
        onScroll={onScroll}
        onScrollEnd={() => {
          by_hand.current = false
        }}
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
            setAway(false)
            toEnd()
          }}
        >
          <Icon name="down" />
        </button>
      )}
    </div>
  )
}
