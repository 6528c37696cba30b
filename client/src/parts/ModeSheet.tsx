import type { Mode } from '@baton/shared/guest.ts'
import { useState, type ReactElement } from 'react'
import { MODES } from '@baton/shared/view/modes.ts'
import { Sheet } from './Sheet.tsx'

/** What the agent may do without asking. Raising it to everything asks once more (F38). */
export default function ModeSheet({
  mode,
  removed,
  onChoose,
  onClose,
}: {
  mode: Mode
  /** Why this device can change nothing any more. */
  removed?: string | undefined
  onChoose: (mode: Mode) => void
  onClose: () => void
}): ReactElement {
  const [chosen, setChosen] = useState(mode)
  const [sure, setSure] = useState(false)
  if (sure) {
    return (
      <Sheet key="sure" title="Give full access?" onClose={onClose}>
        <p>
          Every command runs and every file changes without asking you, also while nobody looks: with all that
          the runner’s user may do.
        </p>
        <div className="sheet-actions">
          <button type="button" className="button" onClick={() => setSure(false)}>
            Back
          </button>
          <button type="button" className="button primary" onClick={() => onChoose('full')}>
            Give full access
          </button>
        </div>
      </Sheet>
    )
  }
  return (
    <Sheet key="choose" title="What may it do without asking?" onClose={onClose}>
      <fieldset className="choices plain">
        <legend className="only-read">Mode</legend>
        {MODES.map(({ mode: other, name, means }) => (
          <label key={other} className="choice">
            <input
              type="radio"
              name="mode"
              aria-label={name}
              aria-description={means}
              checked={other === chosen}
              onChange={() => setChosen(other)}
            />
            <span>{name}</span>
            <span className="small quiet">{means}</span>
          </label>
        ))}
      </fieldset>
      {removed !== undefined && <p className="small problem">{removed}</p>}
      <div className="sheet-actions">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="button primary"
          disabled={removed !== undefined}
          onClick={() => {
            if (chosen === mode) onClose()
            else if (chosen === 'full') setSure(true)
            else onChoose(chosen)
          }}
        >
          Choose
        </button>
      </div>
    </Sheet>
  )
}
