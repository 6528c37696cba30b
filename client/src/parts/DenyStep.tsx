import { useContext, useEffect, useState, type ReactElement } from 'react'
import { usePaired } from './hooks.ts'
import { SidContext } from './sid.ts'

/** The step behind "Deny with a note…": what the agent is told with it. It is kept as typed, as any draft (F15). */
export function DenyStep({
  effect,
  onBack,
  onDeny,
}: {
  effect: number
  onBack: () => void
  onDeny: (note: string) => void
}): ReactElement {
  const { drafts } = usePaired()
  const draft = `${useContext(SidContext)}.deny.${effect}`
  const [note, setNote] = useState('')
  useEffect(() => {
    void drafts.load(draft).then((saved) => setNote((now) => now || saved))
  }, [draft, drafts])
  function change(text: string): void {
    setNote(text)
    drafts.save(draft, text)
  }
  return (
    <div className="always">
      <textarea
        rows={2}
        aria-label="Why not"
        placeholder="Why not? The agent reads it."
        value={note}
        onChange={(event) => change(event.target.value)}
        // Opened to be typed into.
        ref={focus}
      />
      <div className="decide">
        <button type="button" className="button" onClick={onBack}>
          Back
        </button>
        <button
          type="button"
          className="button primary"
          disabled={note.trim() === ''}
          onClick={() => {
            onDeny(note.trim())
            drafts.save(draft, '')
          }}
        >
          Deny with note
        </button>
      </div>
    </div>
  )
}

const focus = (area: HTMLTextAreaElement | null): void => area?.focus()
