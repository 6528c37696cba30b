import { Worker } from 'node:worker_threads'

const MEMORY_MB = 256

/** Markdown of a page, undefined when it takes too long or too much memory. */
export function markdownOf(
  html: string,
  timeout_ms: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const worker = new Worker(new URL('./html-worker.ts', import.meta.url), {
    workerData: html,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    stderr: true,
  })
  return new Promise((resolve) => {
    const end = (text?: string): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
      void worker.terminate()
      resolve(text)
    }
    const aborted = (): void => end()
    const timer = setTimeout(end, timeout_ms)
    signal.addEventListener('abort', aborted)
    worker.once('message', (text) => end(String(text)))
    worker.on('error', () => end())
  })
}
