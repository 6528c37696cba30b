/** Input schemas of host tools: JSON Schema, or any Standard Schema that can say what it is, Zod 4 say. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { toJsonSchema } from '@valibot/to-json-schema'
import type { GenericSchema } from 'valibot'
import type { Json } from '@baton/shared/guest.ts'

/** The part of Standard Schema (standardschema.dev) that is used here; `jsonSchema` is Standard JSON Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
    readonly jsonSchema?: {
      readonly input: (options: { target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[]
    }

export type JsonSchema = { [key: string]: Json }

export interface InputSchema {
  /** What the model is told. */
  schema: JsonSchema
  /** Gives what `execute` gets, or in words what is wrong. */
  check: (input: Record<string, Json>) => Promise<{ value: unknown } | { words: string }>
}

/** Throws Error, for a person, when it is no schema of an object. */
export function inputSchema(given: unknown): InputSchema {
  if (isStandard(given)) return ofStandard(given)
  if (typeof given !== 'object' || given === null || Array.isArray(given) || !('type' in given))
    throw new Error('must be a JSON Schema or a Zod schema')
  return ofJsonSchema(plain(given))
}

function isStandard(given: unknown): given is StandardSchema {
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) return false
  const standard: unknown = '~standard' in given ? given['~standard'] : undefined
  if (typeof standard !== 'object' || standard === null || !('validate' in standard)) return false
  return typeof standard.validate === 'function'
}

function ofStandard(given: StandardSchema): InputSchema {
  const standard = given['~standard']
  const schema = plain(describe(given))
  if (schema['type'] !== 'object') throw new Error('must be of an object')
  const { $schema: _, ...told } = schema
  return {
    schema: told,
    check: async (input) => {
      const result = await standard.validate(input)
      if (!result.issues) return { value: result.value }
      return { words: result.issues.map(({ message, path }) => `${pathOf(path)}${message}`).join('; ') }
    },
  }
}

function describe(given: StandardSchema): unknown {
  const { vendor, jsonSchema } = given['~standard']
  if (jsonSchema) return jsonSchema.input({ target: 'draft-2020-12' })
  if (vendor === 'valibot') return toJsonSchema(given as unknown as GenericSchema, { errorMode: 'ignore' })
  throw new Error(
    `this ${vendor} schema can not say what it is: update ${vendor} (Zod: 4.2), or give a JSON Schema`,
  )
}

function ofJsonSchema(schema: JsonSchema): InputSchema {
  if (schema['type'] !== 'object') throw new Error("must have type 'object'")
  // Compiled here: a fault in the schema is for the person who wrote it, not for the model.
  const validate = new AjvJsonSchemaValidator().getValidator<Record<string, Json>>(schema)
  return {
    schema,
    check: async (input) => {
      const result = validate(input)
      return result.valid
        ? { value: result.data }
        : { words: result.errorMessage.replaceAll(/\bdata\b\/?/g, '').trim() }
    },
  }
}

function plain(value: unknown): JsonSchema {
  return JSON.parse(JSON.stringify(value)) as JsonSchema
}

function pathOf(path: readonly unknown[] = []): string {
  const keys = path.map((part) =>
    typeof part === 'object' && part !== null && 'key' in part ? String(part.key) : String(part),
  )
  return keys.length > 0 ? `${keys.join('.')}: ` : ''
}
