import { Worker } from 'node:worker_threads'
import { BatonError } from '@baton/shared/errors.ts'
import { Refusal } from '../tools/define.ts'
import type { Found } from '../tools/git-search.ts'
import type { SearchTask } from './search-worker.ts'

const TIMEOUT_MS = 30_000
const MEMORY_MB = 512

/** Throws Refusal for a pattern that is none or takes too long; BatonError `stopped`. */
export async function searchTree(task: SearchTask, signal: AbortSignal): Promise<Found> {
  const worker = new Worker(new URL('./search-worker.ts', import.meta.url), {
    workerData: task,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  const limit = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
  try {
    return await new Promise<Found>((resolve, reject) => {
      worker.once('message', resolve)
      worker.on('error', (error) =>
        reject(new Refusal(`The search failed: ${error instanceof Error ? error.message : String(error)}`)),
      )
      limit.addEventListener('abort', () =>
        reject(
          signal.aborted
            ? new BatonError('stopped')
            : new Refusal('The search took too long. Use a simpler pattern.'),
        ),
      )
    })
  } finally {
    await worker.terminate()
  }
}
