/**
 * The default agent: a person prompts, the model answers and calls tools until it has nothing more to do. The conversation lives in
 * guest memory and always satisfies the API's pairing rules, also after a stop or an error in the middle of a turn.
 */
import { EffectFailed, emit, stopping, takeCompact, type LlmResult } from 'baton'
import { blocksOf, callsOf, text } from './coder-blocks.ts'
import { performCalls } from './coder-calls.ts'
import { compact } from './coder-compact.ts'
import { Circles, tellError } from './coder-errors.ts'
import { Prompts } from './coder-inbox.ts'
import { Talk } from './coder-talk.ts'
import { OwnTools } from './coder-tools.ts'
import { Usage } from './coder-usage.ts'

const TITLE_CHARS = 60
/** Answers in a row that may be cut off by their limit of tokens, and pauses of the service. */
const CUT_MAX = 3
const PAUSES_MAX = 8

export default async function main(): Promise<void> {
  const coder = new Coder()
  for (;;) await coder.next()
}

class Coder {
  readonly #prompts = new Prompts()
  readonly #own = new OwnTools()
  readonly #session = new Usage()
  #turn = new Usage()
  #turns = 0
  readonly #talk = new Talk(this.#own, (result) => {
    this.#turn.add(result)
    this.#session.add(result)
  })

  /** Waits for a person, and does what they want. */
  async next(): Promise<void> {
    const given = await this.#prompts.next()
    stopping.clear()
    if (given === 'compact') {
      if (this.#talk.length === 0) emit('note', { message: 'There is nothing to compact yet.' })
      else await this.#told(() => compact(this.#talk, this.#own.todo))
      return
    }
    const turn = ++this.#turns
    if (turn === 1) emit('title', titleOf(given.text))
    emit('turn', { turn, state: 'start' })
    this.#turn = new Usage()
    this.#prompts.listen()
    this.#talk.addUser(blocksOf(given))
    const reason = await this.#told(() => this.#run())
    // Said before the stop: it is part of what was said, and begins nothing.
    for (const prompt of this.#prompts.takeStopped()) this.#talk.addUser(blocksOf(prompt))
    emit('turn', {
      ...{ turn, state: 'end', reason, ...this.#turn.report(), session: this.#session.report() },
      context: { tokens: this.#talk.tokens, window: this.#talk.window },
    })
  }

  /** Runs something that may be stopped or fail; tells people of a failure. */
  async #told(work: () => Promise<string | void>): Promise<string> {
    try {
      return (await work()) ?? 'done'
    } catch (error) {
      if (!(error instanceof EffectFailed)) throw error
      if (error.code === 'stopped') return 'stopped'
      tellError(error.code, error.message)
      return 'error'
    }
  }

  /** One turn, until the model is done or a person has to act. Returns why it ended. Rejects with EffectFailed. */
  async #run(): Promise<string> {
    const circles = new Circles()
    let cuts = 0
    let pauses = 0
    for (;;) {
      this.#hear()
      const result = await this.#answer()
      const { content, stop_reason } = result
      if (stop_reason === 'refusal') return this.#refused(result)
      this.#talk.addAnswer(result)
      const isCut = stop_reason === 'max_tokens' || stop_reason === 'model_context_window_exceeded'
      cuts = isCut ? cuts + 1 : 0
      pauses = stop_reason === 'pause_turn' ? pauses + 1 : 0
      const calls = callsOf(content)
      if (calls.length > 0) {
        const results = await performCalls(calls, result, this.#own)
        this.#talk.addUser(results)
        if (stopping.requested) return 'stopped'
        const error = circles.met(calls, results)
        if (error !== undefined) return handOver('agent-stuck', error)
      }
      if (cuts >= CUT_MAX) return handOver('answer-cut', `The last ${cuts} answers were cut off.`)
      if (pauses > PAUSES_MAX) {
        return handOver('model-error', `The service paused its answer ${pauses} times in a row.`)
      }
      if (calls.length > 0 || pauses > 0) continue
      if (isCut)
        this.#talk.addUser([text('Your answer was cut off by its limit. Go on exactly where it ended.')])
      else if (!this.#hear()) return stop_reason
    }
  }

  /** Adds what people said or changed meanwhile. True: there was something. */
  #hear(): boolean {
    const said = this.#prompts.takeSteering()
    for (const prompt of said) this.#talk.addUser(blocksOf(prompt))
    const news = this.#own.takeNews()
    if (news !== undefined) this.#talk.addUser([text(news)])
    return said.length > 0
  }

  /** The next answer; the conversation is compacted before where it has to be, or a person wants it. */
  async #answer(): Promise<LlmResult> {
    if (takeCompact() || this.#talk.isFull) await compact(this.#talk, this.#own.todo)
    try {
      return await this.#talk.ask()
    } catch (error) {
      if (!(error instanceof EffectFailed) || error.code !== 'context-full') throw error
    }
    await compact(this.#talk, this.#own.todo, { isFull: true })
    return this.#talk.ask()
  }

  /** What was said so far of a declined answer is void. */
  #refused({ usage }: LlmResult): string {
    this.#talk.addAnswer({ content: [text('[I declined to answer this.]')], usage })
    tellError('model-refused', 'The model declined to answer.')
    return 'refusal'
  }
}

/** A person has to help; nothing is lost. */
function handOver(code: string, message: string): string {
  tellError(code, message)
  return code
}

function titleOf(prompt: string): string {
  const line = prompt.trim().split('\n')[0] ?? ''
  if (line === '') return 'A picture'
  return line.length <= TITLE_CHARS ? line : `${line.slice(0, TITLE_CHARS - 1).trimEnd()}…`
}
