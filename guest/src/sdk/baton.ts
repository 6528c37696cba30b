/**
 * The module `baton`: what an agent can do. Every effect returns a promise; its `.sync` form blocks right there, and the whole
 * stack is saved while it waits.
 *
 *     import { emit, prompt } from 'baton'
 *     export default async function main() {
 *       const { text } = await prompt()
 *       emit('note', `you said ${text}`)
 *     }
 */
import type {
  ApproveResult,
  Json,
  PromptInput,
  PromptResult,
  ToolInput,
  ToolResult,
} from '@baton/shared/guest.ts'
import { ask, blockFor, outcomeOf } from './effects.ts'
import { callDigest } from './digest.ts'
import { session, type StartInfo } from './session.ts'

export { conversation, llm, type Conversation, type LlmOptions } from './conversation.ts'
export { Document, document, DocumentRefused, type StandardSchema } from './document.ts'
export { EffectFailed } from './effects.ts'
export { misfit, type FromSchema, type JsonSchema } from './schema.ts'
export { onCompact, onMode, onSettings, onStop, stopping, takeCompact, type StartInfo } from './session.ts'
export { textOf } from './text.ts'
export type {
  Access,
  Effort,
  ImageRef,
  Json,
  LlmResult,
  Mode,
  Message,
  OwnTool,
  PromptResult,
  ToolResult,
  ToolSpec,
} from '@baton/shared/guest.ts'

type Input = ToolInput['input']

/** Performs a tool of the start message. */
export interface ToolOptions {
  /** Number of the approval of this very call. */
  approval?: number
  /** The id that the model gave to the call. */
  call?: string
}
export function tool(name: string, input: Input, options: ToolOptions = {}): Promise<ToolResult> {
  return outcomeOf(ask('tool', { name, input, ...options }))
}
tool.sync = (name: string, input: Input, options: ToolOptions = {}): ToolResult =>
  blockFor(ask('tool', { name, input, ...options }))

/** Waits for a person's next prompt; with `steer` for one that is meant for the work under way. */
export function prompt(options: PromptInput = {}): Promise<PromptResult> {
  return outcomeOf(ask('prompt', options))
}
prompt.sync = (options: PromptInput = {}): PromptResult => blockFor(ask('prompt', options))

/** A person's decision on one call. `effect` is what `tool` takes as `approval`. */
export interface Decision extends ApproveResult {
  effect: number
}
/** Asks a person whether a call may be made. */
export async function approve(name: string, input: Input): Promise<Decision> {
  const effect = ask('approve', { name, input, digest: callDigest(name, input) })
  return { ...(await outcomeOf<ApproveResult>(effect)), effect }
}
approve.sync = (name: string, input: Input): Decision => {
  const effect = ask('approve', { name, input, digest: callDigest(name, input) })
  return { ...blockFor<ApproveResult>(effect), effect }
}

/** Waits that many milliseconds. */
export async function sleep(ms: number): Promise<void> {
  await outcomeOf(ask('sleep', { ms }))
}
sleep.sync = (ms: number): void => {
  blockFor(ask('sleep', { ms }))
}

/** Tells watchers something; does not wait. */
export function emit(type: string, data: Json): void {
  ask('emit', { type, data })
}

/** What the session was started with; mode and settings as they are now. */
export function start(): StartInfo {
  if (session.start === undefined) throw new Error('the session has not started')
  return session.start
}
