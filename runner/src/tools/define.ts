/** Builds a tool whose input is validated, and whose refusals become results that the model can act on. */
import { existsSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { BatonError, ERRORS } from '@baton/shared/errors.ts'
import type { Access, EffectError, Json, Replay } from '@baton/shared/guest.ts'
import type { CallPlace, Tool, ToolAnswer, ToolContext } from './tool.ts'

/** A call that can't be done as asked. The message tells the model what to do instead. */
export class Refusal extends Error {
  override name = 'Refusal'
  /** For people and tests; a code of errors.ts where one fits. */
  readonly code: string

  constructor(message: string, code = 'bad-input') {
    super(message)
    this.code = code
  }
}

export function defineTool<S extends v.StrictObjectSchema<v.ObjectEntries, undefined>>(definition: {
  name: string
  description: string
  replay: Replay
  access: Access
  changes?: Tool['changes']
  /** Each entry carries a v.description for the model. */
  input: S
  /**
   * Throws Refusal for what can't be done, whatever other calls do before it. Also asked before a person is, then without a place while the
   * files are on their way.
   */
  check?: (input: v.InferOutput<S>, place?: CallPlace) => Promise<void> | void
  run: (input: v.InferOutput<S>, context: ToolContext) => Promise<ToolAnswer>
}): Tool {
  const { name, description, replay, access, input: schema, changes, check, run } = definition
  const invalid = (issues: readonly v.BaseIssue<unknown>[]): string =>
    `The input of ${name} is not valid: ${issuesOf(issues)}`
  return {
    spec: { name, description, replay, access, schema: jsonSchema(schema) },
    ...(changes ? { changes } : {}),
    async objection(input, place) {
      const parsed = v.safeParse(schema, input)
      if (!parsed.success) return { code: 'bad-input', message: invalid(parsed.issues) }
      try {
        await check?.(parsed.output, place)
        return undefined
      } catch (error) {
        if (error instanceof Refusal) return objectionOf(error)
        throw error
      }
    },
    async execute(input, context) {
      if (context.signal.aborted) throw new BatonError('stopped')
      const parsed = v.safeParse(schema, input)
      if (!parsed.success) return refused(invalid(parsed.issues))
      try {
        await check?.(parsed.output, context)
        return await run(parsed.output, context)
      } catch (error) {
        if (error instanceof Refusal) return refused(error.message, error.code)
        throw translated(error, context)
      }
    },
  }
}

/** A refusal as an effect's error: codes that only people and tests know become `not-allowed`. */
export function objectionOf({ code, message }: Pick<Refusal, 'code' | 'message'>): EffectError {
  return { code: Object.hasOwn(ERRORS, code) ? code : 'not-allowed', message }
}

export function refused(text: string, code = 'bad-input'): ToolAnswer {
  return { text, is_error: true, detail: { code } }
}

function jsonSchema(schema: v.StrictObjectSchema<v.ObjectEntries, undefined>): { [key: string]: Json } {
  const { $schema: _, ...rest } = toJsonSchema(schema, { errorMode: 'ignore' })
  return JSON.parse(JSON.stringify(rest)) as { [key: string]: Json }
}

function issuesOf(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues
    .map((issue) => {
      const key = v.getDotPath(issue) ?? 'input'
      return issue.received === 'undefined' ? `${key} is missing` : `${key}: ${issue.message}`
    })
    .join('; ')
}

function translated(error: unknown, context: ToolContext): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOSPC' || code === 'EDQUOT') return new BatonError('disk-full', '', { cause: error })
  if (error instanceof BatonError) return error
  if (!existsSync(context.root)) return new BatonError('workspace-missing', context.root)
  const words = error instanceof Error ? error.message : String(error)
  return new BatonError('internal', words, { cause: error })
}
