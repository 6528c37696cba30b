import type { Json } from '@baton/shared/guest.ts'
import { useState, type ReactElement } from 'react'
import { blank, typedNumber, wordOf, type Field, type Form, type Scalar } from '../store/form.ts'
import { Icon } from './icons.tsx'
import { Markdown } from './Markdown.tsx'

/** The fields of a document; each change gives the whole value anew. */
export function NoteForm({
  form,
  value,
  disabled,
  label,
  onChange,
}: {
  form: Form
  value: Json
  disabled: boolean
  /** Name of a document that is a single value. */
  label: string
  onChange: (value: Json) => void
}): ReactElement {
  if (form.as === 'one') {
    return <FieldView {...{ field: form.field, value, disabled, label, onChange }} />
  }
  const known = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}
  return (
    <>
      {form.fields.map(({ name, title, about, optional, field }) => (
        <div key={name} className="field">
          <FieldView
            field={field}
            value={known[name]}
            disabled={disabled}
            label={title}
            onChange={(next) => {
              const { [name]: _, ...rest } = known
              // An optional text that was emptied is left out.
              onChange(optional && next === '' ? rest : { ...known, [name]: next })
            }}
          />
          {about && <p className="small quiet">{about}</p>}
        </div>
      ))}
    </>
  )
}

interface FieldProps<F> {
  field: F
  value: Json | undefined
  disabled: boolean
  label: string
  onChange: (value: Json) => void
}

function FieldView({ field, value, disabled, label, onChange }: FieldProps<Field>): ReactElement {
  switch (field.as) {
    case 'owned':
      return <Owned value={value} label={label} />
    case 'fixed':
      return (
        <div>
          <p className="small quiet">{label}</p>
          <pre className="fixed wrap">{JSON.stringify(value ?? null, null, 2)}</pre>
        </div>
      )
    case 'list':
      return <ListView {...{ field, value, disabled, label, onChange }} />
    case 'switch':
      return (
        <label className="switch-line">
          <ScalarView {...{ field, value, disabled, label, onChange }} />
          <span>{label}</span>
        </label>
      )
    default:
      return (
        <label className="field-line">
          <span className="small quiet">{label}</span>
          <ScalarView {...{ field, value, disabled, label, onChange }} />
        </label>
      )
  }
}

/** What only the agent changes, as text where it is one. */
function Owned({ value, label }: { value: Json | undefined; label: string }): ReactElement {
  const isText = typeof value === 'string'
  return (
    <div role="group" aria-label={label}>
      <p className="small quiet">{label}</p>
      {isText ? (
        <Markdown text={value} />
      ) : (
        <pre className="fixed wrap">{JSON.stringify(value ?? null, null, 2)}</pre>
      )}
    </div>
  )
}

function ListView({
  field: { of },
  value,
  disabled,
  label,
  onChange,
}: FieldProps<{ as: 'list'; of: Scalar }>): ReactElement {
  const list = Array.isArray(value) ? value : []
  return (
    <fieldset className="field-list">
      <legend className="small quiet">{label}</legend>
      {list.map((one, i) => (
        <div key={i} className="field-entry">
          <ScalarView
            field={of}
            value={one}
            disabled={disabled}
            label={`${label}, entry ${i + 1}`}
            onChange={(next) => onChange(list.with(i, next))}
          />
          <button
            type="button"
            className="icon-button"
            aria-label={`Remove ${label}, entry ${i + 1}`}
            disabled={disabled}
            onClick={() => onChange(list.toSpliced(i, 1))}
          >
            <Icon name="cross" size={18} />
          </button>
        </div>
      ))}
      <button
        type="button"
        className="button bare"
        disabled={disabled}
        onClick={() => onChange([...list, blank(of)])}
      >
        Add
      </button>
    </fieldset>
  )
}

function ScalarView({ field, value, disabled, label, onChange }: FieldProps<Scalar>): ReactElement {
  switch (field.as) {
    case 'text':
      return (
        <textarea
          className="grows"
          rows={1}
          aria-label={label}
          disabled={disabled}
          value={typeof value === 'string' ? value : ''}
          onChange={(event) => onChange(event.target.value)}
        />
      )
    case 'number':
      return <NumberView {...{ value, disabled, label, onChange }} />
    case 'switch':
      return (
        <input
          type="checkbox"
          aria-label={label}
          disabled={disabled}
          checked={value === true}
          onChange={(event) => onChange(event.target.checked)}
        />
      )
    case 'choice': {
      const at = field.options.findIndex((option) => option === value)
      return (
        <select
          aria-label={label}
          disabled={disabled}
          value={at}
          onChange={(event) => onChange(field.options[Number(event.target.value)] ?? null)}
        >
          {at < 0 && <option value={-1}>{value === undefined ? 'not set' : wordOf(value)}</option>}
          {field.options.map((option, i) => (
            <option key={i} value={i}>
              {wordOf(option)}
            </option>
          ))}
        </select>
      )
    }
  }
}

/** Keeps what is typed, `1.` say, while it is not yet the number that it will be. */
function NumberView({ value, disabled, label, onChange }: Omit<FieldProps<Scalar>, 'field'>): ReactElement {
  const shown = wordOf(value)
  const [text, setText] = useState(shown)
  // Changed from elsewhere, e.g. by the agent.
  const current = wordOf(typedNumber(text)) === shown ? text : shown
  return (
    <input
      type="text"
      inputMode="decimal"
      aria-label={label}
      disabled={disabled}
      value={current}
      onChange={(event) => {
        setText(event.target.value)
        onChange(typedNumber(event.target.value))
      }}
    />
  )
}
