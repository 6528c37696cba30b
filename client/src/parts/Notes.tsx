import type { DocumentState, Json } from '@baton/shared/guest.ts'
import { readTodos } from '@baton/shared/view/documents.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import { useEffect, useState, type ReactElement } from 'react'
import { formOf, problemsOf } from '../store/form.ts'
import { draftOf, editFromText, editToText, standingOf, type Edit } from '../store/note.ts'
import { usePaired } from './hooks.ts'
import { NoteForm } from './NoteForm.tsx'
import { Sheet } from './Sheet.tsx'
import { TodoForm } from './TodoForm.tsx'
import { unkeptWords } from './unkept-words.ts'

/** Queues a change of a document; resolves with the command's id once it is durable here. */
export type SaveNote = (change: { name: string; version: number; value: Json }) => Promise<string>

/** The documents of a session: typed values that the agent and people change. */
export default function Notes({
  sid,
  transcript,
  disabled,
  onSave,
  onClose,
}: {
  sid: string
  transcript: Transcript
  /** Nothing can be changed: the session has ended, or this device was removed. */
  disabled: boolean
  onSave: SaveNote
  onClose: () => void
}): ReactElement {
  return (
    <Sheet title="Notes" onClose={onClose}>
      {[...transcript.documents.values()].map((note) => (
        <Note
          key={note.name}
          sid={sid}
          note={note}
          answers={transcript.answers}
          disabled={disabled}
          onSave={onSave}
        />
      ))}
      <div className="sheet-actions">
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Sheet>
  )
}

function Note({
  sid,
  note,
  answers,
  disabled,
  onSave,
}: {
  sid: string
  note: DocumentState
  answers: Transcript['answers']
  disabled: boolean
  onSave: SaveNote
}): ReactElement {
  const { drafts } = usePaired()
  const [edit, setEdit] = useState<Edit | undefined>()
  const [problem, setProblem] = useState('')
  const of = draftOf(sid, note.name)
  const standing = standingOf(edit, note, answers)

  useEffect(() => {
    let current = true
    void drafts.load(of).then((text) => current && setEdit((now) => now ?? editFromText(text)))
    return () => {
      current = false
    }
  }, [drafts, of])

  function keep(next: Edit | undefined): void {
    setProblem('')
    setEdit(next)
    drafts.save(of, next ? editToText(next) : '')
  }
  // Taken: from here on what the agent holds is what shows.
  const taken = edit !== undefined && standing.at === 'none'
  useEffect(() => {
    if (taken) keep(undefined)
  }, [taken])

  const value = standing.at === 'none' ? note.value : (edit?.value ?? note.value)
  const form = formOf(note.schema)
  const todos = readTodos(value)
  const problems = form && !todos ? problemsOf(form, value) : []
  const locked = disabled || standing.at === 'sent'

  function change(next: Json): void {
    const version = edit && standing.at !== 'refused' && standing.at !== 'none' ? edit.version : note.version
    keep({ version, value: next })
  }
  async function save(): Promise<void> {
    try {
      const { version } = note
      const command = await onSave({ name: note.name, version, value })
      keep({ version, value, command })
    } catch (error) {
      setProblem(unkeptWords(error, 'Change not sent'))
    }
  }

  return (
    <section className="note" aria-label={note.name}>
      <h3>{note.name}</h3>
      {todos ? (
        <TodoForm todos={todos} disabled={locked} onChange={change} />
      ) : form ? (
        <NoteForm form={form} value={value} disabled={locked} label={note.name} onChange={change} />
      ) : typeof value === 'string' ? (
        <p className="fixed wrap">{value}</p>
      ) : (
        <pre className="fixed wrap">{JSON.stringify(value, null, 2)}</pre>
      )}
      {problem && (
        <p className="small problem" role="alert">
          {problem}
        </p>
      )}
      {standing.at === 'behind' && (
        <p className="small problem" role="alert">
          It was changed meanwhile. Yours is kept here: save it over the new version, or take the new one.
        </p>
      )}
      {standing.at === 'refused' && (
        <p className="small problem" role="alert">
          Not taken: {standing.why} Yours is kept here.
        </p>
      )}
      {standing.at === 'sent' && (
        <p className="small quiet" role="status">
          Sent. The agent takes it at its next step.
        </p>
      )}
      {standing.at === 'sent' && edit && !disabled && (
        <button
          type="button"
          className="button bare"
          onClick={() => keep({ version: edit.version, value: edit.value })}
        >
          Change it again
        </button>
      )}
      {problems.map((words) => (
        <p key={words} className="small problem">
          {words}
        </p>
      ))}
      {(standing.at === 'edited' || standing.at === 'behind' || standing.at === 'refused') && (
        <div className="sheet-actions">
          <button type="button" className="button" onClick={() => keep(undefined)}>
            {standing.at === 'edited' ? 'Discard' : 'Take the new one'}
          </button>
          <button
            type="button"
            className="button primary"
            disabled={disabled || problems.length > 0}
            onClick={() => void save()}
          >
            {standing.at === 'behind' ? 'Save over it' : 'Save'}
          </button>
        </div>
      )}
    </section>
  )
}
