/** Builds a tool whose input is validated, and whose refusals become results that the model can act on. */
import { existsSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import type { Access, Json, Replay } from '@baton/shared/guest.ts'
import type { Tool, ToolAnswer, ToolContext } from './tool.ts'

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
  run: (input: v.InferOutput<S>, context: ToolContext) => Promise<ToolAnswer>
}): Tool {
  const { name, description, replay, access, input: schema, changes, run } = definition
  return {
    spec: { name, description, replay, access, schema: jsonSchema(schema) },
    ...(changes ? { changes } : {}),
    async execute(input, context) {
      if (context.signal.aborted) throw new BatonError('stopped')
      const parsed = v.safeParse(schema, input)
      if (!parsed.success) return refused(`The input of ${name} is not valid: ${issuesOf(parsed.issues)}`)
      try {
        return await run(parsed.output, context)
      } catch (error) {
        if (error instanceof Refusal) return refused(error.message, error.code)
        throw translated(error, context)
      }
    },
  }
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
