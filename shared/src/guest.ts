/**
 * What guest and runner say to each other. Everything crosses as JSON text, in both directions, so that the guest's
 * memory holds no host object and a snapshot needs nothing but pages.
 *
 * The guest asks for effects; it never waits for the world in any other way. Effects are numbered 1, 2, 3 … by the
 * guest, so that the same program fed the same messages asks for the same effects with the same numbers.
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** May an effect that has an intent and no outcome be started again? `never`: no (I5). */
export type Replay = 'safe' | 'never'

export type EffectKind = 'llm' | 'tool' | 'prompt' | 'approve' | 'sleep' | 'emit'

/**
 * What the agent may do without asking. `plan`: look, nothing else. `ask`: look; the rest asks. `edit`: also change files of the
 * workspace. `full`: everything. Rules (permissions.ts) refine it.
 */
export type Mode = 'plan' | 'ask' | 'edit' | 'full'

/** What a tool touches. `read`: nothing changes. `edit`: files of the workspace. `run`: anything. */
export type Access = 'read' | 'edit' | 'run'

/** How much the model should think before it answers. Not every model takes the last two. */
export type Effort = 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** A picture, kept as a sealed blob of the session. */
export interface ImageRef {
  blob: string
  media_type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
}

/**
 * One message of a conversation, in the shape of the Anthropic Messages API. `content` is a list of blocks. A picture stands as
 * `{type: 'image', source: {type: 'blob', blob, media_type}}`, also inside a tool result; the runner puts its bytes in.
 */
export interface Message {
  role: 'user' | 'assistant'
  content: { [key: string]: Json; type: string }[]
}

/** A tool as the model sees it, with its replay policy. The runner sends the list in the start message. */
export interface ToolSpec {
  name: string
  description: string
  /** JSON Schema of the input. */
  schema: { [key: string]: Json }
  replay: Replay
  access: Access
}

/** A tool that the agent performs itself, in the guest. */
export type OwnTool = Pick<ToolSpec, 'name' | 'description' | 'schema'>

/**
 * Asks the model. A conversation is append-only and stays in guest memory; a request hands over what is new.
 * `digest` names the whole conversation after `add`: d0 = hex SHA-256 of `''`, and d(n+1) = hex SHA-256 of
 * dn + '\n' + JSON.stringify(message). `follows` is the digest before `add`, of the first `prior` messages. A runner that
 * lacks that prefix sends `resend` and gets the same request with `prior: 0` and every message in `add`.
 */
export interface LlmInput {
  conversation: string
  prior: number
  follows: string
  add: Message[]
  digest: string
  system: string
  /** Names of the tools offered to the model; their specs are in the start message. */
  tools: string[]
  own_tools?: OwnTool[]
  model?: string
  effort?: Effort
  max_tokens?: number
}

export interface LlmResult {
  content: Message['content']
  stop_reason: string
  model: string
  usage: {
    input_tokens: number
    output_tokens: number
    cache_read_tokens: number
    cache_write_tokens: number
  }
  /** Calls whose input was no JSON object or was cut off, by id, with the beginning of what came; in `content` their input is `{}`. */
  invalid_input?: { [call: string]: string }
  /** What the answer cost, in US dollars; absent when the model's price is not known. */
  cost_usd?: number
  /** Tokens that the model's context holds; absent when not known. */
  window?: number
}

/**
 * Performs a tool. A call that mode and rules do not allow is refused: `not-allowed`, or `not-approved` unless `approval` is the effect
 * id of an approval of this very call.
 */
export interface ToolInput {
  name: string
  input: { [key: string]: Json }
  approval?: number
  /** The id that the model gave to this call; carried so that a transcript can join call and answer. */
  call?: string
}

export interface ToolResult {
  /** Text for the model. Bounded by the runner. */
  text: string
  is_error: boolean
  images?: ImageRef[]
  /** For people: exit code, diff, counts. Never needed by the agent. */
  detail?: { [key: string]: Json }
}

/** Waits for a person's prompt. `steer`: for one that is meant for the turn under way; others wait until the turn is over. */
export interface PromptInput {
  steer?: boolean
}
export interface PromptResult {
  text: string
  images?: ImageRef[]
  /** The person meant it for the turn under way. */
  steer?: boolean
  /** The command's id. */
  command: string
}

/** Waits for a decision on one call. `digest` is callDigest(name, input), see digest.ts (I10). */
export interface ApproveInput {
  name: string
  input: { [key: string]: Json }
  digest: string
}
export interface ApproveResult {
  approved: boolean
  /** What the person said with it. */
  note?: string
  /** Who decided; absent: a rule or the mode did. */
  device?: string
}

/** Waits. `ms` counts from the guest's clock at the request. */
export interface SleepInput {
  ms: number
}

/**
 * Tells watchers something. Has no outcome. `type` is the agent's own, e.g. `title`, `note`, `done`. The SDK tells of documents with the
 * type `document`; see DocumentState.
 */
export interface EmitInput {
  type: string
  data: Json
}

/** A version of a document, as the event `document` carries it. `version` counts 1, 2, 3 … */
export interface DocumentState {
  name: string
  version: number
  value: Json
  /** JSON Schema, for forms. */
  schema?: { [key: string]: Json }
  /** Id of the command whose change this answers: applied, or `refused` with the reason (then `value` is as before). */
  command?: string
  refused?: string
}

interface Asked<K extends EffectKind, I> {
  id: number
  kind: K
  input: I
}

/** An effect as the guest asks for it. */
export type EffectRequest =
  | Asked<'llm', LlmInput>
  | Asked<'tool', ToolInput>
  | Asked<'prompt', PromptInput>
  | Asked<'approve', ApproveInput>
  | Asked<'sleep', SleepInput>
  | Asked<'emit', EmitInput>

/** Failure of an effect, as the guest sees it. */
export interface EffectError {
  /** `interrupted`: may have run (I5). `stopped`: a person pressed Stop. Others: see errors.ts. */
  code: string
  message: string
  /** Head and tail of what a tool had printed when it was ended. */
  printed?: string | undefined
}

/** The first message of a session. */
export interface StartMessage {
  type: 'start'
  /** 64 hex digits; seeds the random generator. */
  seed: string
  /** Milliseconds since 1970 at which the guest's clock starts. */
  now: number
  mode: Mode
  tools: ToolSpec[]
  /** What the agent should know of its surroundings: workspace path, branch, platform. */
  about: { [key: string]: Json }
  /** Free settings of the agent, e.g. model. */
  settings: { [key: string]: Json }
}

export interface OutcomeMessage {
  type: 'outcome'
  effect: number
  now: number
  result?: Json
  error?: EffectError
}

/** A person pressed Stop. Open effects end with outcomes of their own. */
export interface StopMessage {
  type: 'stop'
  now: number
}

/** A person changed the mode. */
export interface ModeMessage {
  type: 'mode'
  now: number
  mode: Mode
}

/** A person changed settings; those that are not named stay. */
export interface SettingsMessage {
  type: 'settings'
  now: number
  settings: { [key: string]: Json }
}

/** A person wants the conversation to be compacted at the next step. */
export interface CompactMessage {
  type: 'compact'
  now: number
}

/** A person changed a document. `version`: of the value that they saw. The SDK answers with an event `document`. */
export interface DocumentMessage {
  type: 'document'
  now: number
  command: string
  name: string
  version: number
  value: Json
}

/** A fork draws other random numbers than its origin (F58). */
export interface ReseedMessage {
  type: 'reseed'
  seed: string
}

/** Not journaled: asks for the open `llm` effect again, whole, because this runner lacks the prefix. */
export interface ResendMessage {
  type: 'resend'
  effect: number
}

export type GuestMessage =
  | StartMessage
  | OutcomeMessage
  | StopMessage
  | ModeMessage
  | SettingsMessage
  | CompactMessage
  | DocumentMessage
  | ReseedMessage
  | ResendMessage

/** The guest rests. What it asked for since the last pause stands in `asked`, in order. */
export type Pause =
  /** No stack: all jobs are drained, effects may be open. Any message may be delivered. */
  | { state: 'quiescent'; asked: EffectRequest[] }
  /** Unwound in a `.sync` call of effect `on`. Only its outcome (or a resend of it) may be delivered. */
  | { state: 'blocked'; on: number; asked: EffectRequest[] }
  /** Unwound at a loop check: interrupted from outside or out of fuel. Go on with `run`. */
  | { state: 'interrupted'; asked: EffectRequest[] }
  /** The agent's main function returned. */
  | { state: 'finished'; asked: EffectRequest[]; result: Json }
  /** Trap, memory limit, stack overflow or an uncaught error of the agent. The guest can't go on. */
  | { state: 'failed'; asked: EffectRequest[]; error: EffectError }
