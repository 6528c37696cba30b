/** Documents and the schemas that check them. */
import type { DocumentState, Json } from '@baton/shared/guest.ts'
import { describe, expect, expectTypeOf, test } from 'vitest'
import {
  document,
  DocumentRefused,
  emit,
  misfit,
  type Document,
  type StandardSchema,
} from '../src/sdk/baton.ts'
import { assertSchema, type FromSchema, type JsonSchema } from '../src/sdk/schema.ts'
import { Session } from './session.ts'

const schema = {
  type: 'object',
  properties: { title: { type: 'string', minLength: 1 }, count: { type: 'integer', minimum: 0 } },
  required: ['title'],
  additionalProperties: false,
} as const

/** A session whose agent does this and then waits. */
function run(work: () => void): Session {
  return new Session(() => {
    work()
    return new Promise(() => undefined)
  })
}

const states = (session: Session): DocumentState[] =>
  session.emitted('document') as unknown as DocumentState[]

describe('A9: a document', () => {
  test('is told with every version, and its value is what the schema says', () => {
    let made: Document<{ title: string; count?: number }> | undefined
    const session = run(() => {
      made = document('list', { schema, initial: { title: 'a' } })
      made.set({ title: 'b', count: 1 })
      made.update((value) => ({ ...value, title: 'c' }))
    })
    expect(made?.value).toEqual({ title: 'c', count: 1 })
    expect(states(session)).toEqual([
      { name: 'list', version: 1, value: { title: 'a' }, schema },
      { name: 'list', version: 2, value: { title: 'b', count: 1 }, schema },
      { name: 'list', version: 3, value: { title: 'c', count: 1 }, schema },
    ])
  })

  test('refuses what does not fit, in words, and stays as it was', () => {
    const session = run(() => {
      const made = document('list', { schema, initial: { title: 'a' } })
      const wrong: unknown[] = [
        {},
        { title: '' },
        { title: 'a', count: 1.5 },
        { title: 'a', more: 1 },
        undefined,
        'x',
      ]
      for (const value of wrong) {
        try {
          made.set(value as { title: string })
        } catch (error) {
          if (error instanceof DocumentRefused) emit('refused', error.message)
        }
      }
      expect(() => Object.assign(made.value, { title: 'x' })).toThrow(TypeError)
      expect(made.version).toBe(1)
    })
    expect(session.emitted('refused')).toEqual([
      'It must have "title".',
      'title must not be empty.',
      'count must be a whole number.',
      'It must not have "more".',
      'It must be JSON.',
      'It must be an object.',
    ])
  })

  test('has a bounded size, counted in bytes', () => {
    run(() => {
      const made = document<string>('text', { initial: '' })
      made.set('x'.repeat(90_000))
      expect(() => made.set('é'.repeat(50_000))).toThrow('It has 98 KB; a document has at most 88 KB.')
      expect(() => made.set('😀'.repeat(22_000))).not.toThrow()
      expect(() => made.set('😀'.repeat(23_000))).toThrow('88 KB')
    })
  })

  test("what its schema calls read-only is the agent's: no change of a person's touches it", () => {
    const owned = {
      type: 'object',
      properties: {
        note: { type: 'string' },
        state: { enum: ['open', 'done'], readOnly: true },
        by: { type: 'object', properties: { name: { type: 'string', readOnly: true } } },
      },
      required: ['state'],
    } as const
    let made: Document<{ state: 'open' | 'done'; note?: string }> | undefined
    const session = run(() => {
      made = document('plan', { schema: owned, initial: { state: 'open', by: { name: 'agent' } } })
    })
    const change = (command: string, version: number, value: Json): void =>
      session.send({ type: 'document', now: 1, command, name: 'plan', version, value })
    change('c1', 1, { state: 'done', by: { name: 'agent' } })
    change('c2', 1, { state: 'open', by: { name: 'me' } })
    change('c3', 1, { state: 'open' })
    change('c4', 1, { state: 'open', by: { name: 'agent' }, note: 'mine' })
    expect(states(session).slice(1)).toMatchObject([
      { version: 1, command: 'c1', refused: "state is the agent's alone." },
      { version: 1, command: 'c2', refused: "by.name is the agent's alone." },
      { version: 1, command: 'c3', refused: "by.name is the agent's alone." },
      { version: 2, command: 'c4', value: { note: 'mine' } },
    ])
    expect(() => made?.set({ state: 'done' })).not.toThrow()
  })

  test("a person's change becomes a version, or is refused with the reason; the agent hears of the first", () => {
    const heard: Json[] = []
    const session = run(() => {
      document('list', { schema, initial: { title: 'a' } }).onChange((value) => heard.push(value))
    })
    const change = (command: string, name: string, version: number, value: Json): void =>
      session.send({ type: 'document', now: 1, command, name, version, value })
    change('c1', 'list', 1, { title: 'b' })
    change('c2', 'list', 1, { title: 'late' })
    change('c3', 'list', 2, { title: 3 })
    change('c4', 'none', 1, 1)
    expect(states(session).slice(1)).toMatchObject([
      { version: 2, value: { title: 'b' }, command: 'c1' },
      {
        version: 2,
        value: { title: 'b' },
        command: 'c2',
        refused: expect.stringMatching(/saw version 1, it is at 2/),
      },
      { version: 2, value: { title: 'b' }, command: 'c3', refused: 'title must be a text.' },
      { name: 'none', command: 'c4', refused: 'There is no document "none".' },
    ])
    expect(heard).toEqual([{ title: 'b' }])
  })

  test('takes any Standard Schema', () => {
    const positive: StandardSchema<number> = {
      '~standard': {
        version: 1,
        validate: (value) =>
          typeof value === 'number' && value > 0
            ? { value }
            : { issues: [{ message: 'must be positive', path: ['n', { key: 0 }] }] },
      },
    }
    const slow = {
      '~standard': { version: 1, validate: async () => ({ value: 1 }) },
    } as StandardSchema<number>
    const session = run(() => {
      const made = document('n', { schema: positive, initial: 1, form: { type: 'number' } })
      expect(() => made.set(-1)).toThrow('n.0: must be positive')
      made.set(2)
      expect(() => document('slow', { schema: slow, initial: 1 })).toThrow('asynchronously')
    })
    expect(states(session)).toMatchObject([{ schema: { type: 'number' } }, { value: 2 }])
  })

  test('has a name of its own, and a schema that is understood', () => {
    run(() => {
      document('a', { initial: 1 })
      expect(() => document('a', { initial: 2 })).toThrow('there is a document "a" already')
      expect(() => document('b', { schema: { type: 'string', oneOf: [] }, initial: '' })).toThrow('"oneOf"')
      const large = { type: 'string', description: 'x'.repeat(17_000) } as const
      expect(() => document('c', { schema: large, initial: '' })).toThrow('16 KB')
    })
  })
})

test('the type of a document is read off its schema', () => {
  expectTypeOf<FromSchema<typeof schema>>().toEqualTypeOf<{ title: string; count?: number }>()
  const list = { type: 'array', items: { enum: ['a', 'b'] } } as const
  expectTypeOf<FromSchema<typeof list>>().toEqualTypeOf<('a' | 'b')[]>()
  run(() => {
    const made = document('list', { schema: list, initial: ['a'] })
    expectTypeOf(made.value).toEqualTypeOf<('a' | 'b')[]>()
    // @ts-expect-error -- not one of them
    expect(() => made.set(['c'])).toThrow('[0] must be one of')
  })
})

describe('a schema', () => {
  test.each<[JsonSchema, Json, string | undefined]>([
    [{}, null, undefined],
    [{ type: ['string', 'null'] }, null, undefined],
    [{ type: ['string', 'null'] }, 1, 'It must be a text or null'],
    [{ type: 'number' }, '1', 'It must be a number'],
    [{ type: 'boolean' }, 'true', 'It must be true or false'],
    [{ type: 'array', minItems: 1 }, [], 'It must have at least 1 items'],
    [{ type: 'array', maxItems: 1, items: { type: 'null' } }, [null], undefined],
    [{ type: 'array', items: { type: 'null' } }, [null, 1], '[1] must be null'],
    [{ const: { a: 1 } }, { a: 1 }, undefined],
    [{ const: 'x' }, 'y', 'It must be "x"'],
    [{ type: 'number', minimum: 1, maximum: 2 }, 3, 'It must be at most 2'],
    [{ type: 'number', minimum: 1 }, 0, 'It must be at least 1'],
    [{ type: 'string', maxLength: 2 }, 'abc', 'It must have at most 2 characters'],
    [{ type: 'string', pattern: '^a+$' }, 'ab', 'It must match ^a+$'],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, 1, undefined],
    [{ anyOf: [{ type: 'string' }, { type: 'number' }] }, true, 'It fits none of what is allowed'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, { a: 1, b: 'x' }, 'b must be a number'],
    [
      { type: 'object', properties: { a: { type: 'object', required: ['b'] } } },
      { a: {} },
      'a must have "b"',
    ],
    [{ type: 'object', required: ['toString'] }, {}, 'It must have "toString"'],
  ])('%j of %j: %s', (given, value, words) => {
    assertSchema(given)
    expect(misfit(given, value)).toBe(words)
  })
})
