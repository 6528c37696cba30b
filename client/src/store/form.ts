/** A form from the JSON Schema of a document: what can be typed where. Pure. What has no field stays as it is. */
import type { Json } from '@baton/shared/guest.ts'

type Schema = { [key: string]: Json }

export type Scalar =
  | { as: 'text' }
  | { as: 'number'; whole: boolean }
  | { as: 'switch' }
  | { as: 'choice'; options: readonly Json[] }

/** `owned`: the agent's alone (`readOnly`). `fixed`: no field fits it. Both are shown, and not to be changed here. */
export type Field = Scalar | { as: 'list'; of: Scalar } | { as: 'owned' } | { as: 'fixed' }

export interface NamedField {
  name: string
  title: string
  about: string
  optional: boolean
  field: Field
}

/** `one`: the document is a single value; `many`: an object of them. */
export type Form = { as: 'one'; field: Field } | { as: 'many'; fields: readonly NamedField[] }

/** Undefined: no field fits anything of the document. */
export function formOf(schema: Schema | undefined): Form | undefined {
  if (!schema) return undefined
  if (schema['readOnly'] === true) return { as: 'one', field: { as: 'owned' } }
  const properties = schema['properties']
  if (schema['type'] !== 'object') {
    const field = fieldOf(schema)
    return field.as === 'fixed' ? undefined : { as: 'one', field }
  }
  if (!isSchema(properties)) return undefined
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  const fields = Object.entries(properties).map(([name, property]): NamedField => {
    const known = isSchema(property) ? property : {}
    return {
      name,
      title: textOf(known['title']) || name,
      about: textOf(known['description']),
      optional: !required.includes(name),
      field: fieldOf(known),
    }
  })
  return fields.some(({ field }) => field.as !== 'fixed') ? { as: 'many', fields } : undefined
}

function fieldOf(schema: Schema): Field {
  if (schema['readOnly'] === true) return { as: 'owned' }
  const scalar = scalarOf(schema)
  if (scalar) return scalar
  const { type, items } = schema
  const of = type === 'array' && isSchema(items) ? scalarOf(items) : undefined
  return of ? { as: 'list', of } : { as: 'fixed' }
}

function scalarOf({ type, enum: options }: Schema): Scalar | undefined {
  if (Array.isArray(options) && options.length > 0 && options.every(isPlain)) return { as: 'choice', options }
  switch (type) {
    case 'string':
      return { as: 'text' }
    case 'number':
    case 'integer':
      return { as: 'number', whole: type === 'integer' }
    case 'boolean':
      return { as: 'switch' }
    default:
      return undefined
  }
}

/** What is wrong with a value that was typed, in words; empty when it can be sent. The agent checks it against the whole schema. */
export function problemsOf(form: Form, value: Json): string[] {
  if (form.as === 'one') return problem('The value', form.field, value)
  const known = isSchema(value) ? value : {}
  return form.fields.flatMap(({ name, title, optional, field }) => {
    const typed = known[name]
    if (typed === undefined) return optional || isShown(field) ? [] : [`${title} is missing.`]
    return problem(title, field, typed)
  })
}

function problem(title: string, field: Field, value: Json): string[] {
  if (field.as === 'list') {
    const list = Array.isArray(value) ? value : []
    return list.flatMap((one, i) => problem(`${title}, entry ${i + 1},`, field.of, one))
  }
  if (field.as !== 'number') return []
  if (typeof value !== 'number') return [`${title} must be a number.`]
  return field.whole && !Number.isInteger(value) ? [`${title} must be a whole number.`] : []
}

/** What a number field holds: the number that was typed, or the text while it is none. */
export function typedNumber(text: string): Json {
  const number = Number(text.trim().replace(',', '.'))
  return text.trim() === '' || !Number.isFinite(number) ? text : number
}

/** A value as a person reads and types it: text as it is, all else as JSON. */
export function wordOf(value: Json | undefined): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What an entry that is added begins with. */
export function blank(field: Scalar): Json {
  switch (field.as) {
    case 'text':
    case 'number':
      return ''
    case 'switch':
      return false
    case 'choice':
      return field.options[0] ?? null
  }
}

const isSchema = (value: Json | undefined): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Only shown: nothing that is typed can be wrong with it. */
const isShown = ({ as }: Field): boolean => as === 'fixed' || as === 'owned'
const isPlain = (value: Json): boolean => typeof value !== 'object' || value === null
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
