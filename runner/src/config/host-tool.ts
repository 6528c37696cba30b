/** A tool that a repository brings, as its author writes it and as the agent calls it. */
import * as v from 'valibot'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Access, Json, Replay, ToolResult } from '@baton/shared/guest.ts'
import { refused } from '../tools/define.ts'
import { pictureOf, pictureType } from '../tools/pictures.ts'
import { bounded } from '../tools/text.ts'
import type { Tool, ToolAnswer } from '../tools/tool.ts'
import type { InputSchema, JsonSchema, StandardSchema } from './schema.ts'

interface CallContext {
  /** The session's work tree. */
  root: string
  /** Ends the call. */
  signal: AbortSignal
}

/** Text, or a result. `images`: PNG, JPEG, GIF or WebP files that the model is to see. */
export type HostAnswer =
  string | (Omit<ToolResult, 'images' | 'is_error'> & { is_error?: boolean; images?: Uint8Array[] })

export interface ConfigTool {
  /** What it does and when to use it, for the model. */
  description: string
  /** JSON Schema of the input, of type object; or a Zod schema. */
  input: JsonSchema | StandardSchema
  /** May it be started again when a crash left its outcome unknown? */
  replay: Replay
  /** What it touches; the mode decides by it whether a call asks first. Default: `run`. */
  access?: Access
  /** Gets what the input schema let through. */
  execute(input: Record<string, Json>, context: CallContext): Promise<HostAnswer> | HostAnswer
}

/** A tool whose `execute` gets the type that its Zod schema gives. Only for its types. */
export function defineTool<Input, Output>(
  tool: Omit<ConfigTool, 'input' | 'execute'> & {
    input: StandardSchema<Input, Output>
    execute: (input: Output, context: CallContext) => Promise<HostAnswer> | HostAnswer
  },
): ConfigTool {
  return tool as unknown as ConfigTool
}

const Result = v.union([
  v.string(),
  v.object({
    text: v.string(),
    is_error: v.optional(v.boolean(), false),
    detail: v.optional(v.record(v.string(), v.unknown())),
    images: v.optional(v.pipe(v.array(v.instance(Uint8Array)), v.maxLength(8))),
  }),
])

export type Execute = (input: unknown, context: CallContext) => unknown

/** `input`: how the input is checked before `execute` sees it. */
export function hostTool(spec: Tool['spec'], input: InputSchema, execute: Execute): Tool {
  return {
    spec,
    async objection(asked) {
      const checked = await input.check(asked)
      return 'words' in checked
        ? { code: 'bad-input', message: invalid(spec.name, checked.words) }
        : undefined
    },
    async execute(asked, { root, signal }) {
      if (signal.aborted) throw new BatonError('stopped')
      let given: unknown
      try {
        const checked = await input.check(asked)
        if ('words' in checked) return refused(invalid(spec.name, checked.words))
        given = await execute(checked.value, { root, signal })
      } catch (error) {
        if (signal.aborted) throw new BatonError('stopped')
        return { text: bounded(`${spec.name} failed: ${explain(error)}`), is_error: true }
      }
      return answerOf(spec.name, given)
    },
  }
}

const invalid = (name: string, words: string): string => `The input of ${name} is not valid: ${words}`

function answerOf(name: string, given: unknown): ToolAnswer {
  const result = v.safeParse(Result, given)
  if (!result.success)
    return { text: `${name} returned neither text nor a result with text.`, is_error: true }
  if (typeof result.output === 'string')
    return { text: bounded(result.output.toWellFormed()), is_error: false }
  const { text, is_error, detail, images = [] } = result.output
  const answer: ToolAnswer = {
    text: bounded(text.toWellFormed()),
    is_error,
    ...(detail ? { detail: JSON.parse(JSON.stringify(detail)) as { [key: string]: Json } } : {}),
  }
  if (images.length === 0) return answer
  try {
    return { ...answer, images: images.map((bytes) => picture(name, Buffer.from(bytes))) }
  } catch (error) {
    return { text: `${answer.text}\n(${explain(error)})`, is_error: true }
  }
}

function picture(
  name: string,
  bytes: Buffer,
): { media_type: NonNullable<ReturnType<typeof pictureType>>; bytes: Buffer } {
  const media_type = pictureType(bytes)
  if (!media_type) throw new Error(`A picture of ${name} is neither PNG, JPEG, GIF nor WebP.`)
  pictureOf(bytes, media_type, `A picture of ${name}`)
  return { media_type, bytes }
}
