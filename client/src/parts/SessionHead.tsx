import type { Mode } from '@baton/shared/guest.ts'
import type { ReactElement } from 'react'
import { modeName } from '@baton/shared/view/modes.ts'
import { Icon } from './icons.tsx'
import { Link } from './Link.tsx'

/** Title and state of a session, then what can be changed: its mode, where it runs, and the rest in a menu. */
export function SessionHead({
  title,
  unknown,
  words,
  wide,
  ended,
  place,
  online,
  mode,
  changing,
  onMode,
  onMove,
  onMenu,
}: {
  title: string
  /** There is no such session: nothing can be said or changed. */
  unknown: boolean
  /** What it does or waits for. */
  words: string
  wide: boolean
  ended: boolean
  /** Name of the runner. */
  place: string | undefined
  /** The runner is there, as far as this device knows. */
  online: boolean
  mode: Mode | undefined
  /** The mode is a wish of this device that the agent has not heard of yet. */
  changing: boolean
  onMode: () => void
  onMove: () => void
  onMenu: () => void
}): ReactElement {
  return (
    <header className={wide ? 'session-head wide' : 'session-head'}>
      {!wide && (
        <Link to="/" className="icon-button" aria-label="Sessions">
          <Icon name="back" />
        </Link>
      )}
      <h1 className="ellipsis" title={title}>
        {title}
      </h1>
      {!unknown && (
        <button
          type="button"
          className="icon-button"
          aria-label="Session menu"
          aria-haspopup="dialog"
          onClick={onMenu}
        >
          <Icon name="more" />
        </button>
      )}
      <div className="session-state">
        <p className="small quiet two-lines">{unknown ? '' : words}</p>
        {mode && !ended && (
          <button
            type="button"
            className={mode === 'full' ? 'chip bold' : 'chip'}
            aria-label={changing ? `Mode: ${modeName(mode)}, being changed` : `Mode: ${modeName(mode)}`}
            aria-haspopup="dialog"
            onClick={onMode}
          >
            <span>
              {modeName(mode)}
              {changing && '…'}
            </span>
          </button>
        )}
        {place && ended && (
          <span className="chip">
            <span>
              <span className="chip-dot" />
              <span className="ellipsis">{place}</span>
            </span>
          </span>
        )}
        {place && !ended && (
          <button
            type="button"
            className="chip"
            aria-label={`Runner: ${place}`}
            aria-haspopup="dialog"
            onClick={onMove}
          >
            <span>
              <span className={online ? 'chip-dot on' : 'chip-dot'} />
              <span className="ellipsis">{place}</span>
            </span>
          </button>
        )}
      </div>
    </header>
  )
}
