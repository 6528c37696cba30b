/** A relay in a thread of its own, so that a benchmark's peer and the relay do not share an event loop. */
import { parentPort, workerData } from 'node:worker_threads'
import { startRelay, type StartOptions } from '@baton/relay/main.ts'

const relay = await startRelay(workerData as StartOptions)
parentPort?.postMessage(relay.url)
parentPort?.once('message', () => {
  void relay.close().then(() => parentPort?.close())
})
