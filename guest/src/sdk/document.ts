/**
 * Documents: typed JSON that lives with the session. It is guest memory, so it survives whatever the session survives. Each version
 * is told to watchers; a person may change it by a form, checked like a change of the agent's own.
 */
import type { DocumentMessage, DocumentState, Json } from '@baton/shared/guest.ts'
import { ask } from './effects.ts'
import { session } from './session.ts'
import { assertSchema, misfit, touched, type FromSchema, type JsonSchema } from './schema.ts'

/** Bytes of a value as JSON, and of a schema: so much fits into an entry and into a person's command. */
const VALUE_BYTES_MAX = 88 << 10
const SCHEMA_BYTES_MAX = 16 << 10

/** What Zod, Valibot, ArkType and others have in common (standardschema.dev), as far as it is used here. */
export interface StandardSchema<T = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly validate: (value: unknown) => StandardResult<T> | Promise<StandardResult<T>>
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
  }
}
type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { message: string; path?: readonly unknown[] | undefined }[] }

/** Thrown when a value does not fit the schema or is too large; the message says why. The document stays as it was. */
export class DocumentRefused extends Error {
  override name = 'DocumentRefused'
}

type Check<T> = (value: unknown) => T

export class Document<T> {
  readonly name: string
  readonly #check: Check<T>
  readonly #schema: JsonSchema | undefined
  readonly #listeners = new Set<(value: T) => void>()
  #value: T
  #version = 1

  /** Agents use `document`, which also makes it known by its name. */
  constructor(name: string, check: Check<T>, schema: JsonSchema | undefined, initial: T) {
    this.name = name
    this.#check = check
    this.#schema = schema
    this.#value = frozen(check(initial))
    this.#tell()
  }

  /** Frozen, all of it: change it by `set` or `update`. */
  get value(): T {
    return this.#value
  }

  /** Counts 1, 2, 3 … */
  get version(): number {
    return this.#version
  }

  /** Makes a new version. Throws DocumentRefused. */
  set(value: T): void {
    this.#become(this.#check(value))
  }

  /** Makes a new version out of the present one. Throws DocumentRefused. */
  update(change: (value: T) => T): void {
    this.set(change(copied(this.#value)))
  }

  /** Calls back when a person has changed it. Returns a function that ends this. */
  onChange(callback: (value: T) => void): () => void {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  /** A person's change; answered by a new version or by a refusal. */
  changed({ command, version, value }: Pick<DocumentMessage, 'command' | 'version' | 'value'>): void {
    try {
      if (version !== this.#version) {
        throw new DocumentRefused(
          `The document has changed meanwhile: you saw version ${version}, it is at ${this.#version}.`,
        )
      }
      const next = this.#check(value)
      const owned = this.#schema && touched(this.#schema, this.#value, next)
      if (owned !== undefined) throw new DocumentRefused(`${owned}.`)
      this.#become(next, command)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      this.#tell({ command, refused: error.message })
      return
    }
    for (const listener of this.#listeners) listener(this.#value)
  }

  #become(value: T, command?: string): void {
    this.#value = frozen(value)
    this.#version++
    this.#tell(command === undefined ? {} : { command })
  }

  #tell(answer: Pick<DocumentState, 'command' | 'refused'> = {}): void {
    tell({
      ...{ name: this.name, version: this.#version, value: this.#value as Json },
      ...(this.#schema && { schema: this.#schema as NonNullable<DocumentState['schema']> }),
      ...answer,
    })
  }
}

const documents = new Map<string, Document<unknown>>()

/**
 * Makes a document. With a JSON Schema (see schema.ts) its type is read off; any Standard Schema object does as well, with
 * `form` as the JSON Schema for forms. Throws DocumentRefused when `initial` does not fit, TypeError for a schema that is not
 * understood or a name that is taken.
 */
export function document<const S extends JsonSchema>(
  name: string,
  options: { schema: S; initial: FromSchema<S> },
): Document<FromSchema<S>>
export function document<T>(
  name: string,
  options: { schema: StandardSchema<T>; initial: T; form?: JsonSchema },
): Document<T>
export function document<T extends Json>(name: string, options: { initial: T }): Document<T>
export function document(
  name: string,
  { schema, initial, form }: { schema?: JsonSchema | StandardSchema; initial: unknown; form?: JsonSchema },
): Document<unknown> {
  if (session.start === undefined) throw new TypeError('a document is made in the main function, not before')
  if (documents.has(name)) throw new TypeError(`there is a document ${JSON.stringify(name)} already`)
  const forForms = isStandard(schema) ? form : schema
  if (forForms !== undefined) {
    assertSchema(forForms)
    if (bytesOf(JSON.stringify(forForms)) > SCHEMA_BYTES_MAX) {
      throw new TypeError(`the schema is larger than ${SCHEMA_BYTES_MAX >> 10} KB`)
    }
  }
  const made = new Document(name, checkOf(schema), forForms, initial)
  documents.set(name, made)
  return made
}

/** A person's change, by the name of the document. */
export function documentChanged({ name, command, version, value }: DocumentMessage): void {
  const known = documents.get(name)
  if (known) known.changed({ command, version, value })
  else
    tell({ name, version: 0, value: null, command, refused: `There is no document ${JSON.stringify(name)}.` })
}

export function resetDocuments(): void {
  documents.clear()
}

function tell(state: DocumentState): void {
  ask('emit', { type: 'document', data: state as unknown as Json })
}

function isStandard(schema: JsonSchema | StandardSchema | undefined): schema is StandardSchema {
  return schema !== undefined && '~standard' in schema
}

function checkOf(schema: JsonSchema | StandardSchema | undefined): Check<unknown> {
  return (value) => {
    const fit = isStandard(schema) ? fitOf(schema, value) : value
    const text = JSON.stringify(fit) as string | undefined
    if (text === undefined) throw new DocumentRefused('It must be JSON.')
    const bytes = bytesOf(text)
    if (bytes > VALUE_BYTES_MAX) {
      const words = `It has ${Math.ceil(bytes / 1024)} KB; a document has at most ${VALUE_BYTES_MAX >> 10} KB.`
      throw new DocumentRefused(words)
    }
    // What JSON can't hold must not live here either.
    const plain = JSON.parse(text) as Json
    const wrong = schema === undefined || isStandard(schema) ? undefined : misfit(schema, plain)
    if (wrong !== undefined) throw new DocumentRefused(`${wrong}.`)
    return plain
  }
}

function fitOf(schema: StandardSchema, value: unknown): unknown {
  const result = schema['~standard'].validate(value)
  if (result instanceof Promise)
    throw new DocumentRefused('Its schema checks asynchronously, which a document can not.')
  if (result.issues === undefined) return result.value
  const [issue] = result.issues
  const path = (issue?.path ?? []).map((part) =>
    typeof part === 'object' && part !== null && 'key' in part ? String(part.key) : String(part),
  )
  throw new DocumentRefused([path.join('.'), issue?.message ?? 'It does not fit'].filter(Boolean).join(': '))
}

function copied<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) frozen(inner)
  return Object.freeze(value)
}

/** Length in UTF-8. */
function bytesOf(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    // Half of a pair counts two, so that a pair counts four.
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1
  }
  return bytes
}
