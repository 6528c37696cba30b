import { poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { isTaking, presenceWords, roomWords } from '@baton/shared/view/runners.ts'
import { useState, type ReactElement } from 'react'
import { isCloud, poolsOf, type Runner } from '../store/account.ts'
import { Icon } from './icons.tsx'
import { usePaired, useRemoved } from './hooks.ts'
import { Sheet } from './Sheet.tsx'

interface Destination {
  id: string
  label: string
  about: string
  icon: 'cloud' | 'laptop'
  online: boolean
  to: Placement
}

/** Where a session can go: every other runner, then any runner of a pool. Pure but for the pool's tag. */
export function destinationsOf(
  runners: readonly Runner[],
  holder: string | undefined,
  tag: (pool: string) => string,
): Destination[] {
  const others = runners
    .filter((runner) => runner.device !== holder && runner.about)
    .map((runner) => ({
      id: runner.device,
      label: runner.about?.name ?? '',
      about: isTaking(runner)
        ? `online · ${roomWords(runner)} sessions`
        : `${presenceWords(runner)}; it moves when it is back`,
      icon: isCloud(runner) ? ('cloud' as const) : ('laptop' as const),
      online: isTaking(runner),
      to: { prefer: runner.device },
    }))
    .toSorted((a, b) => Number(b.online) - Number(a.online))
  const pools = poolsOf(runners).map(({ name, online }) => ({
    id: `pool:${name}`,
    label: `Any of ${name}`,
    about: online === 0 ? 'none online now' : `${online} online`,
    icon: 'cloud' as const,
    online: online > 0,
    to: { pool: tag(name) },
  }))
  return [...others, ...pools]
}

export function MoveSheet({
  runners,
  holder,
  onMove,
  onClose,
}: {
  runners: readonly Runner[]
  holder: string | undefined
  onMove: (to: Placement, label: string) => void
  onClose: () => void
}): ReactElement {
  const { hub } = usePaired()
  const removed = useRemoved()
  const destinations = destinationsOf(runners, holder, (pool) => poolTag(hub.account, pool))
  const [id, setId] = useState(destinations.find(({ online }) => online)?.id)
  const chosen = destinations.find((destination) => destination.id === id)
  return (
    <Sheet title="Where should it run?" onClose={onClose}>
      {destinations.length === 0 ? (
        <p className="quiet">
          There is no other runner. Start one on another machine: <code>baton runner --join LINK</code>, with
          a link from Settings.
        </p>
      ) : (
        <>
          <fieldset className="choices">
            <legend className="only-read">Destination</legend>
            {destinations.map((destination) => (
              <label key={destination.id} className="choice">
                <input
                  type="radio"
                  name="destination"
                  aria-label={destination.label}
                  checked={destination.id === id}
                  onChange={() => setId(destination.id)}
                />
                <Icon name={destination.icon} size={22} />
                <span className="ellipsis">{destination.label}</span>
                <span className="small quiet">{destination.about}</span>
              </label>
            ))}
          </fieldset>
          <p className="small quiet">
            It stops, takes its memory and files along, and goes on there where it was.
          </p>
        </>
      )}
      {removed !== undefined && <p className="small problem">{removed}</p>}
      <div className="sheet-actions">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        {destinations.length > 0 && (
          <button
            type="button"
            className="button primary"
            disabled={!chosen || removed !== undefined}
            onClick={() => chosen && onMove(chosen.to, chosen.label)}
          >
            Move
          </button>
        )}
      </div>
    </Sheet>
  )
}
