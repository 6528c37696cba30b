/** Worker threads for guests: asked one question at a time, kept warm, and never a reason for the process to stay alive. */
import { Worker } from 'node:worker_threads'
import { BatonError } from '@baton/shared/errors.ts'
import type { Answer, Answers, Question } from './messages.ts'

/** QuickJS stops at 512 KiB of its own stack; the machine's stack under it takes several times as much. */
const stackMb = 8
/** Threads kept for the next guest. More would only hold memory. */
const idleMax = 4

interface Waiting {
  resolve(value: Answers[keyof Answers]): void
  reject(error: Error): void
}

export class Thread {
  readonly #worker: Worker
  #waiting: Waiting | undefined
  #ended: Error | undefined

  constructor() {
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      resourceLimits: { stackSizeMb: stackMb },
    })
    this.#worker.on('message', (answer: Answer) => this.#settle(answer))
    this.#worker.on('error', (cause) =>
      this.#end(new BatonError('guest-trapped', `(${cause.message})`, { cause })),
    )
    this.#worker.on('exit', () => this.#end(new BatonError('guest-trapped', '(its thread has ended)')))
    // Last: listening for messages holds the process too.
    this.#worker.unref()
  }

  get alive(): boolean {
    return this.#ended === undefined
  }

  /** Asks one question. Throws what the guest's side threw, with its code. */
  ask<Op extends Question['op']>(question: Extract<Question, { op: Op }>): Promise<Answers[Op]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    if (this.#waiting !== undefined)
      return Promise.reject(new BatonError('guest-state', '(it is still busy with the call before)'))
    return new Promise<Answers[Op]>((resolve, reject) => {
      this.#waiting = { resolve: (value) => resolve(value as Answers[Op]), reject }
      this.#worker.ref()
      this.#worker.postMessage(question)
    })
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    this.#worker.unref()
    if (answer.ok) waiting?.resolve(answer.value)
    else if (answer.code === undefined) waiting?.reject(new Error(answer.detail))
    else waiting?.reject(new BatonError(answer.code, answer.detail))
  }

  #end(error: Error): void {
    this.#ended ??= error
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }
}

const idle: Thread[] = []

/** A process that ends sooner than this needs no second guest. */
const warmUpAfterMs = 200

/** A thread for one guest; soon after, the next one is started, so that it is warm when it is needed. */
export function takeThread(): Thread {
  const warm = idle.pop()
  if (idle.length === 0) setTimeout(warmUp, warmUpAfterMs).unref()
  return warm?.alive === true ? warm : new Thread()
}

function warmUp(): void {
  if (idle.length === 0) idle.push(new Thread())
}

/** Gives a thread back. One that is busy or broken is ended. */
export async function returnThread(thread: Thread): Promise<void> {
  const free = await thread.ask({ op: 'drop' }).then(
    () => thread.alive && idle.length < idleMax,
    () => false,
  )
  if (free) idle.push(thread)
  else await thread.terminate()
}
