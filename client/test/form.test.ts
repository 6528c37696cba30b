import { describe, expect, test } from 'vitest'
import { formOf, problemsOf, typedNumber, wordOf, type Form } from '../src/store/form.ts'
import { draftOf, editFromText, editToText, standingOf } from '../src/store/note.ts'
import { SETTINGS_SCHEMA } from './story.ts'

const settings = formOf(SETTINGS_SCHEMA) as Form & { as: 'many' }

describe('a form from a JSON Schema', () => {
  test('C24: has a field for text, numbers, switches, choices and lists of them, by their titles', () => {
    expect(settings.fields.map(({ title, field, optional }) => [title, field.as, optional])).toEqual([
      ['Title', 'text', false],
      ['Rounds', 'number', false],
      ['Strict', 'switch', true],
      ['Level', 'choice', true],
      ['Files', 'list', true],
    ])
  })

  test('C24: what no field fits stays as it is, and a schema of nothing else has no form', () => {
    const nested = { type: 'object', properties: { a: { type: 'object' }, b: { type: 'string' } } }
    expect(formOf(nested)).toMatchObject({ fields: [{ field: { as: 'fixed' } }, { field: { as: 'text' } }] })
    expect(formOf({ type: 'object', properties: { a: { type: 'object' } } })).toBeUndefined()
    expect(formOf({ type: 'array', items: { type: 'object' } })).toBeUndefined()
    expect(formOf({ enum: [{ a: 1 }] })).toBeUndefined()
    expect(formOf(undefined)).toBeUndefined()
  })

  test('C24: what the agent owns is shown, and there is no field for it', () => {
    const state = { enum: ['open', 'done'], readOnly: true }
    const properties = { text: { type: 'string' }, state }
    const form = formOf({ type: 'object', properties, required: ['text', 'state'] }) as Form
    expect(form).toMatchObject({ fields: [{ field: { as: 'text' } }, { field: { as: 'owned' } }] })
    expect(problemsOf(form, { text: 'a' })).toEqual([])
    expect(formOf({ type: 'object', properties: { state } })).toMatchObject({
      fields: [{ field: { as: 'owned' } }],
    })
    expect(formOf({ type: 'string', readOnly: true })).toEqual({ as: 'one', field: { as: 'owned' } })
    expect(formOf({ type: 'array', readOnly: true })).toEqual({ as: 'one', field: { as: 'owned' } })
    expect(formOf({ ...SETTINGS_SCHEMA, readOnly: true })).toEqual({ as: 'one', field: { as: 'owned' } })
  })

  test('a single value has one field', () => {
    expect(formOf({ type: 'array', items: { enum: ['a', 'b'] } })).toEqual({
      as: 'one',
      field: { as: 'list', of: { as: 'choice', options: ['a', 'b'] } },
    })
  })

  test('what is typed into a number is a number, or is kept as it is and named as a problem', () => {
    expect(['1.5', '1,5', ' 7 ', '', '1e', 'x'].map(typedNumber)).toEqual([1.5, 1.5, 7, '', '1e', 'x'])
    expect(problemsOf(settings, { title: 'a', rounds: 2 })).toEqual([])
    expect(problemsOf(settings, { title: 'a', rounds: 'two' })).toEqual(['Rounds must be a number.'])
    expect(problemsOf(settings, { title: 'a', rounds: 1.5 })).toEqual(['Rounds must be a whole number.'])
    expect(problemsOf(settings, { rounds: 1 })).toEqual(['Title is missing.'])
    const list = formOf({ type: 'array', items: { type: 'number' } }) as Form
    expect(problemsOf(list, [1, 'x'])).toEqual(['The value, entry 2, must be a number.'])
  })

  test('a value is shown as text or as JSON, never as [object Object]', () => {
    expect([wordOf('a'), wordOf(1), wordOf({ a: 1 }), wordOf(undefined)]).toEqual(['a', '1', '{"a":1}', ''])
  })
})

describe('a change of a document', () => {
  const none = new Map<string, string>()

  test('I11, C25: is kept as a draft of its own and read back whole, also after it was sent', () => {
    for (const edit of [
      { version: 3, value: { title: 'a “quoted” title', rounds: '1.' } },
      { version: 3, value: null, command: 'c'.repeat(22) },
    ])
      expect(editFromText(editToText(edit))).toEqual(edit)
    expect(draftOf('a', 'b')).not.toBe(draftOf('a', 'c'))
    expect(editFromText('')).toBeUndefined()
    expect(editFromText('{"version":"x"}')).toBeUndefined()
    expect(editFromText('half a wri')).toBeUndefined()
  })

  test('C25: a newer version is told, not overwritten', () => {
    const edit = { version: 3, value: 1 }
    expect(standingOf(edit, { version: 3 }, none)).toEqual({ at: 'edited' })
    expect(standingOf(edit, { version: 4 }, none)).toEqual({ at: 'behind' })
  })

  test('C25: what was sent waits for the agent’s answer: taken, it is gone; refused, it is still there with the reason', () => {
    const edit = { version: 3, value: 1, command: 'c1' }
    expect(standingOf(edit, { version: 3 }, none)).toEqual({ at: 'sent' })
    // Another change of the agent's is not the answer.
    expect(standingOf(edit, { version: 4 }, none)).toEqual({ at: 'sent' })
    expect(standingOf(edit, { version: 4 }, new Map([['c1', '']]))).toEqual({ at: 'none' })
    expect(standingOf(edit, { version: 4 }, new Map([['c1', 'It is older.']]))).toEqual({
      at: 'refused',
      why: 'It is older.',
    })
    expect(standingOf(undefined, { version: 1 }, none)).toEqual({ at: 'none' })
  })
})
