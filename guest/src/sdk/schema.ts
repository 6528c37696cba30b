/**
 * A part of JSON Schema, as much as documents and forms need: `type`, `properties`, `required`, `additionalProperties`, `items`,
 * `enum`, `const`, lengths, bounds, `pattern`, `anyOf`, `readOnly`. A word that is not known is refused when the schema is read: what is not
 * checked must not look as if it were.
 */
import type { Json } from '@baton/shared/guest.ts'

export type JsonSchema = { readonly [key: string]: unknown }

type TypeName = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null'

/** The TypeScript type that a schema written `as const` (or in place) describes; `Json` where it does not say. */
export type FromSchema<S> = S extends { const: infer C }
  ? C
  : S extends { enum: readonly (infer E)[] }
    ? E
    : S extends { anyOf: readonly (infer A)[] }
      ? FromSchema<A>
      : S extends { type: 'string' }
        ? string
        : S extends { type: 'number' | 'integer' }
          ? number
          : S extends { type: 'boolean' }
            ? boolean
            : S extends { type: 'null' }
              ? null
              : S extends { type: 'array' }
                ? S extends { items: infer I }
                  ? FromSchema<I>[]
                  : Json[]
                : S extends { type: 'object'; properties: infer P }
                  ? ObjectOf<P, S extends { required: readonly (infer R)[] } ? R : never>
                  : Json

type Flat<T> = { [K in keyof T]: T[K] }
type ObjectOf<P, R> = Flat<
  { -readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & {
    -readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]>
  }
>

const ANNOTATIONS = ['$schema', '$id', 'title', 'description', 'default', 'examples', 'format', 'deprecated']
const CHECKED = [
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf', 'pattern'],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'readOnly'],
]
const KNOWN = new Set([...ANNOTATIONS, ...CHECKED])

/** Throws TypeError that names the first word which is not known. */
export function assertSchema(schema: unknown, at = 'the schema'): asserts schema is JsonSchema {
  if (!isObject(schema)) throw new TypeError(`${at} is no JSON Schema`)
  for (const word of Object.keys(schema)) {
    if (!KNOWN.has(word)) throw new TypeError(`${at} uses ${JSON.stringify(word)}, which is not checked here`)
  }
  const { properties, items, anyOf, additionalProperties } = schema
  if (isObject(properties)) {
    for (const [name, inner] of Object.entries(properties)) assertSchema(inner, `${at}, ${name}`)
  }
  if (items !== undefined) assertSchema(items, `${at}, items`)
  if (isObject(additionalProperties)) assertSchema(additionalProperties, `${at}, additional properties`)
  if (Array.isArray(anyOf)) anyOf.forEach((inner) => assertSchema(inner, `${at}, anyOf`))
}

/** Why a value does not fit, in words that name the place; undefined when it fits. */
export function misfit(schema: JsonSchema, value: unknown, at = ''): string | undefined {
  const say = (words: string): string => `${at === '' ? 'It' : at} ${words}`
  if ('const' in schema && !isEqual(schema['const'], value)) {
    return say(`must be ${JSON.stringify(schema['const'])}`)
  }
  if (Array.isArray(schema['enum']) && !schema['enum'].some((option) => isEqual(option, value))) {
    return say(`must be one of ${schema['enum'].map((option) => JSON.stringify(option)).join(', ')}`)
  }
  const types = [schema['type'] ?? []].flat() as TypeName[]
  if (types.length > 0 && !types.some((type) => isOfType(type, value))) {
    return say(`must be ${types.map((type) => ARTICLE[type]).join(' or ')}`)
  }
  const alternatives = schema['anyOf']
  if (Array.isArray(alternatives) && alternatives.every((inner) => misfit(inner as JsonSchema, value, at))) {
    return say('fits none of what is allowed')
  }
  if (typeof value === 'string') return misfitOfText(schema, value, say)
  if (typeof value === 'number') return misfitOfNumber(schema, value, say)
  if (Array.isArray(value)) return misfitOfList(schema, value, at, say)
  return isObject(value) ? misfitOfObject(schema, value, at, say) : undefined
}

/**
 * Which part that is `readOnly` a person's change touches, in words; undefined when it touches none. Looks into objects; a list
 * is as a whole what its own schema says.
 */
export function touched(schema: JsonSchema, before: unknown, after: unknown, at = ''): string | undefined {
  if (schema['readOnly'] === true) {
    return isEqual(before, after) ? undefined : `${at === '' ? 'It' : at} is the agent's alone`
  }
  const { properties } = schema
  if (!isObject(properties)) return undefined
  // One that is not there has nothing in it: to take away or to add what is the agent's touches it, too.
  const was = isObject(before) ? before : {}
  const is = isObject(after) ? after : {}
  for (const [name, inner] of Object.entries(properties)) {
    if (!isObject(inner)) continue
    const wrong = touched(inner, was[name], is[name], at === '' ? name : `${at}.${name}`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

type Say = (words: string) => string

function misfitOfText(schema: JsonSchema, value: string, say: Say): string | undefined {
  const { minLength, maxLength, pattern } = schema
  if (typeof minLength === 'number' && value.length < minLength) {
    return say(minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`)
  }
  if (typeof maxLength === 'number' && value.length > maxLength)
    return say(`must have at most ${maxLength} characters`)
  if (typeof pattern === 'string' && !new RegExp(pattern, 'u').test(value))
    return say(`must match ${pattern}`)
  return undefined
}

function misfitOfNumber({ minimum, maximum }: JsonSchema, value: number, say: Say): string | undefined {
  if (typeof minimum === 'number' && value < minimum) return say(`must be at least ${minimum}`)
  if (typeof maximum === 'number' && value > maximum) return say(`must be at most ${maximum}`)
  return undefined
}

function misfitOfList(schema: JsonSchema, value: unknown[], at: string, say: Say): string | undefined {
  const { minItems, maxItems, items } = schema
  if (typeof minItems === 'number' && value.length < minItems)
    return say(`must have at least ${minItems} items`)
  if (typeof maxItems === 'number' && value.length > maxItems)
    return say(`must have at most ${maxItems} items`)
  if (!isObject(items)) return undefined
  for (const [index, item] of value.entries()) {
    const wrong = misfit(items, item, `${at}[${index}]`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

function misfitOfObject(schema: JsonSchema, value: JsonSchema, at: string, say: Say): string | undefined {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : []
  const missing = required.find((name) => !Object.hasOwn(value, name) || value[name] === undefined)
  if (missing !== undefined) return say(`must have ${JSON.stringify(missing)}`)
  for (const [name, item] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name)
    const inner = known ? properties[name] : schema['additionalProperties']
    if (inner === false) return say(`must not have ${JSON.stringify(name)}`)
    if (item === undefined || !isObject(inner)) continue
    const wrong = misfit(inner, item, at === '' ? name : `${at}.${name}`)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

const ARTICLE: Record<TypeName, string> = {
  object: 'an object',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
}

function isOfType(type: TypeName, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return Number.isFinite(value)
    case 'null':
      return value === null
    case 'string':
    case 'boolean':
      return typeof value === type
  }
}

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isEqual = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)
