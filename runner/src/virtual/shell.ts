/** The thread that runs a session's command lines: started when it is needed, ended at a time-out, begun afresh after that. */
import { Worker } from 'node:worker_threads'
import { changeBetween, withChange, type Change, type Tree } from './tree.ts'
import type { Answer, Ask } from './worker.ts'

const MEMORY_MB = 512

export type Ran =
  | { by: 'exit'; output: string; code: number; change: Change }
  | { by: 'timeout' | 'abort' | 'broke'; words: string }

export class Shell {
  #worker: Worker | undefined
  /** What the thread has. */
  #has: Tree = new Map()

  /** Runs a command line on these files. Whatever ends it but itself leaves them as they were. One at a time. */
  async run(command: string, tree: Tree, timeout_ms: number, signal: AbortSignal): Promise<Ran> {
    const worker = (this.#worker ??= this.#start())
    const ask: Ask = { command, change: changeBetween(this.#has, tree) }
    const ran = await new Promise<Ran>((resolve) => {
      const settle = (result: Ran): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        worker.off('message', onAnswer).off('error', onError).off('exit', onExit)
        resolve(result)
      }
      const onAnswer = (answer: Answer): void => settle({ by: 'exit', ...answer })
      const onError = (error: unknown): void => settle({ by: 'broke', words: wordsOf(error) })
      const onExit = (): void => settle({ by: 'broke', words: 'it ended' })
      const onAbort = (): void => settle({ by: 'abort', words: '' })
      const timer = setTimeout(() => settle({ by: 'timeout', words: '' }), timeout_ms)
      signal.addEventListener('abort', onAbort)
      worker.on('message', onAnswer).on('error', onError).on('exit', onExit)
      if (signal.aborted) onAbort()
      else worker.postMessage(ask)
    })
    if (ran.by === 'exit') this.#has = withChange(tree, ran.change)
    else await this.end()
    return ran
  }

  async end(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    this.#has = new Map()
    await worker?.terminate()
  }

  #start(): Worker {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    })
    worker.unref()
    // Between two commands, and while it is being ended, nobody else listens.
    worker.on('error', () => undefined)
    return worker
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
