import type { Effort, Json } from '@baton/shared/guest.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import { contextWords, usageWords } from '@baton/shared/view/usage.ts'
import type { ReactElement } from 'react'
import { Icon } from './icons.tsx'
import { Sheet } from './Sheet.tsx'

const EFFORTS: readonly (readonly [Effort, string])[] = [
  ['low', 'Low'],
  ['medium', 'Medium'],
  ['high', 'High'],
  ['xhigh', 'Very high'],
  ['max', 'Most'],
]

/** What belongs to a session as a whole: its model, what it has used, its notes. */
export default function SessionMenu({
  transcript,
  models,
  ended,
  compacting,
  removed,
  onSettings,
  onCompact,
  onNotes,
  onClose,
}: {
  transcript: Transcript
  /** Models of the runner, the default first. */
  models: readonly string[]
  ended: boolean
  /** Compacting was asked for here and has not been heard. */
  compacting: boolean
  /** Why this device can change nothing any more. */
  removed: string | undefined
  onSettings: (changed: { [key: string]: Json }) => void
  onCompact: () => void
  onNotes: () => void
  onClose: () => void
}): ReactElement {
  const { settings, usage, documents } = transcript
  const unable = ended || removed !== undefined
  const model = typeof settings['model'] === 'string' ? settings['model'] : (models[0] ?? '')
  const effort = typeof settings['effort'] === 'string' ? settings['effort'] : ''
  return (
    <Sheet title="This session" onClose={onClose}>
      <div className="menu">
        {documents.size > 0 && (
          <button type="button" className="menu-line" onClick={onNotes}>
            <Icon name="note" size={22} />
            <span>Notes</span>
            <span className="small quiet">{documents.size}</span>
            <Icon name="right" size={20} />
          </button>
        )}
        {model !== '' && (
          <Choice
            label="Model"
            value={model}
            disabled={unable}
            options={[...new Set([model, ...models])]
              .toSorted((a, b) => models.indexOf(a) - models.indexOf(b))
              .map((name) => [name, name])}
            onChoose={(chosen) => onSettings({ model: chosen })}
          />
        )}
        <Choice
          label="Effort"
          value={effort}
          disabled={unable}
          options={[...(effort === '' ? [['', 'Default'] as const] : []), ...EFFORTS]}
          onChoose={(chosen) => onSettings({ effort: chosen })}
        />
        {usage && (
          <dl className="facts used">
            <dt>Last turn</dt>
            <dd>{usageWords(usage.turn)}</dd>
            <dt>In all</dt>
            <dd>{usageWords(usage.session)}</dd>
            {usage.context && (
              <>
                <dt>Context</dt>
                <dd>{contextWords(usage.context)}</dd>
              </>
            )}
          </dl>
        )}
        {!ended && (
          <>
            <button
              type="button"
              className="button"
              disabled={unable || compacting}
              onClick={onCompact}
              aria-describedby="compact-means"
            >
              {compacting ? 'Compacting was asked for' : 'Compact now'}
            </button>
            <p className="small quiet" id="compact-means">
              The agent sums up the conversation at its next step and goes on from there. What you see here
              stays.
            </p>
          </>
        )}
        {removed !== undefined && <p className="small problem">{removed}</p>}
      </div>
      <div className="sheet-actions">
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Sheet>
  )
}

function Choice({
  label,
  value,
  options,
  disabled,
  onChoose,
}: {
  label: string
  value: string
  options: readonly (readonly [value: string, name: string])[]
  disabled: boolean
  onChoose: (value: string) => void
}): ReactElement {
  return (
    <label className="menu-line">
      <span>{label}</span>
      <select
        aria-label={label}
        value={value}
        disabled={disabled}
        onChange={(event) => onChoose(event.target.value)}
      >
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}
