import type { Json } from '@baton/shared/guest.ts'
import type { Todo } from '@baton/shared/view/documents.ts'
import { useState, type ReactElement } from 'react'

/** A to-do list: what is done can be ticked, and entries added. */
export function TodoForm({
  todos,
  disabled,
  onChange,
}: {
  todos: readonly Todo[]
  disabled: boolean
  onChange: (value: Json) => void
}): ReactElement {
  const [text, setText] = useState('')
  const give = (next: readonly Todo[]): void => onChange(next.map((todo) => ({ ...todo })))
  function add(): void {
    if (text.trim() === '') return
    give([...todos, { text: text.trim(), state: 'open' }])
    setText('')
  }
  return (
    <>
      <ul role="list" className="todos">
        {todos.map((todo, i) => (
          <li key={i} className={todo.state}>
            <label className="switch-line">
              <input
                type="checkbox"
                disabled={disabled}
                checked={todo.state === 'done'}
                onChange={(event) =>
                  give(todos.with(i, { ...todo, state: event.target.checked ? 'done' : 'open' }))
                }
              />
              <span>{todo.text}</span>
              {todo.state === 'doing' && <span className="small quiet">in work</span>}
            </label>
          </li>
        ))}
      </ul>
      {!disabled && (
        <div className="field-entry">
          <input
            type="text"
            aria-label="New entry"
            placeholder="One more"
            value={text}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && !event.nativeEvent.isComposing) add()
            }}
            onBlur={add}
          />
          <button type="button" className="button bare" disabled={text.trim() === ''} onClick={add}>
            Add
          </button>
        </div>
      )}
    </>
  )
}
