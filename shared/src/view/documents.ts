/** Documents: typed JSON that lives with a session, as its events tell of it. Pure. */
import * as v from 'valibot'
import type { DocumentState, Json } from '../guest.ts'

const json = v.custom<Json>((value) => value !== undefined)

const Document = v.object({
  name: v.string(),
  version: v.number(),
  value: json,
  schema: v.optional(v.record(v.string(), json)),
  command: v.optional(v.string()),
  refused: v.optional(v.string()),
})

/** What an event `document` says; undefined when it is none. */
export function readDocument(data: Json): DocumentState | undefined {
  const parsed = v.safeParse(Document, data)
  if (!parsed.success) return undefined
  const { name, version, value, schema, command, refused } = parsed.output
  return {
    ...{ name, version, value },
    ...(schema === undefined ? {} : { schema }),
    ...(command === undefined ? {} : { command }),
    ...(refused === undefined ? {} : { refused }),
  }
}

export interface Todo {
  text: string
  state: 'open' | 'doing' | 'done'
}

const Todos = v.array(v.object({ text: v.string(), state: v.picklist(['open', 'doing', 'done']) }))

/** The entries of a to-do list; undefined when the value is none. */
export function readTodos(value: Json): Todo[] | undefined {
  const parsed = v.safeParse(Todos, value)
  return parsed.success ? parsed.output : undefined
}

/** `2 of 5 · Write the test`: how far it is, and what is being done. Undefined when there is nothing to do. */
export function todoWords(todos: readonly Todo[]): string | undefined {
  if (todos.length === 0) return undefined
  const done = todos.filter(({ state }) => state === 'done').length
  const doing = todos.find(({ state }) => state === 'doing')
  return [`${done} of ${todos.length}`, ...(doing ? [doing.text] : [])].join(' · ')
}
