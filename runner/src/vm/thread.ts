/** A worker thread that runs guests. It is never a reason for the process to stay alive. */
import { Worker } from 'node:worker_threads'
import { BatonError } from '@baton/shared/errors.ts'
import { BELL, type Answer, type Answers, type Question, type ThreadData } from './messages.ts'

/** QuickJS stops at 512 KiB of its own stack; the machine's stack under it takes several times as much. */
const stackMb = 8

interface Waiting {
  resolve(value: Answers[keyof Answers]): void
  reject(error: Error): void
}

export class Thread {
  readonly #worker: Worker
  readonly #bell = new Int32Array(new SharedArrayBuffer(BELL.bytes))
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0
  #guests = 0
  #ended: Error | undefined

  constructor() {
    const workerData: ThreadData = { bell: this.#bell.buffer }
    this.#worker = new Worker(new URL('./worker.mjs', import.meta.url), {
      workerData,
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

  /** Slices that it has given to its guests. */
  get slices(): number {
    return Atomics.load(this.#bell, BELL.slices)
  }

  /** A number for one more guest. */
  number(): number {
    return ++this.#guests
  }

  /**
   * Asks a question. `deliver` and `run` take their turn; all others are answered as soon as the running guest can be
   * stopped. Throws what the guest's side threw, with its code, and `guest-trapped` when the thread dies.
   */
  ask<Op extends Question['op']>(question: Extract<Question, { op: Op }>): Promise<Answers[Op]> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended)
    return new Promise<Answers[Op]>((resolve, reject) => {
      const re = ++this.#asked
      this.#waiting.set(re, { resolve: (value) => resolve(value as Answers[Op]), reject })
      this.#worker.ref()
      this.#worker.postMessage({ re, question })
      Atomics.add(this.#bell, BELL.posted, 1)
      if (question.op !== 'deliver' && question.op !== 'run') this.ring()
    })
  }

  /** Makes it look around at once: a question came, or the stop flag of a guest was set. */
  ring(): void {
    Atomics.add(this.#bell, BELL.urgent, 1)
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.re)
    this.#waiting.delete(answer.re)
    if (this.#waiting.size === 0) this.#worker.unref()
    if (answer.ok) waiting?.resolve(answer.value)
    else if (answer.code === undefined) waiting?.reject(new Error(answer.detail))
    else waiting?.reject(new BatonError(answer.code, answer.detail))
  }

  #end(error: Error): void {
    this.#ended ??= error
    for (const waiting of this.#waiting.values()) waiting.reject(this.#ended)
    this.#waiting.clear()
  }
}
