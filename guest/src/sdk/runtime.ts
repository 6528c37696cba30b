/** Runs an agent: takes the host's messages, one at a time, and tells when main has ended. */
import type { EffectError, GuestMessage, Json, StartMessage } from '@baton/shared/guest.ts'
import { resetConversations } from './conversation.ts'
import { documentChanged, resetDocuments } from './document.ts'
import { resend, resetEffects, settle } from './effects.ts'
import { host, inGuest, useHost, type Host } from './host.ts'
import { random, randomState } from './random.ts'
import { changeMode, changeSettings, compact, resetSession, session, stop } from './session.ts'

export type Main = () => unknown

/** Takes one message, as JSON. */
export type Deliver = (message: string) => void

/** Makes the function that takes messages; in the guest it becomes a global that the host finds. */
export function run(main: Main): Deliver {
  if (typeof main !== 'function') throw new TypeError('an agent must export its main function as default')
  const deliver: Deliver = (text) => {
    const message = JSON.parse(text) as GuestMessage
    switch (message.type) {
      case 'start':
        return begin(main, message)
      case 'outcome':
        return settle(message)
      case 'stop':
        return stop()
      case 'mode':
        return changeMode(message.mode)
      case 'settings':
        return changeSettings(message.settings)
      case 'compact':
        return compact()
      case 'document':
        return documentChanged(message)
      case 'reseed':
        return // The host has done it: it must work wherever the guest rests.
      case 'resend':
        return resend(message)
    }
  }
  if (inGuest) {
    Math.random = random
    Object.assign(globalThis, { __batonDeliver: deliver, __batonRandom: randomState.buffer })
  }
  return deliver
}

/** The same against a host of one's own, from the beginning: for tests in another runtime. */
export function runWith(given: Host, main: Main): Deliver {
  useHost(given)
  resetEffects()
  resetConversations()
  resetSession()
  resetDocuments()
  return run(main)
}

function begin(main: Main, { mode, tools, about, settings }: StartMessage): void {
  if (session.start !== undefined) throw new Error('the session has started already')
  session.start = { mode, tools, about, settings }
  try {
    const result = main()
    if (result instanceof Promise) result.then(finished, failed)
    else finished(result)
  } catch (error) {
    failed(error)
  }
}

function finished(result: unknown): void {
  try {
    host().end(JSON.stringify({ result: (result ?? null) as Json }))
  } catch (error) {
    failed(error)
  }
}

function failed(error: unknown): void {
  host().end(JSON.stringify({ error: describe(error) }))
}

function describe(error: unknown): EffectError {
  if (!(error instanceof Error)) return { code: 'guest-failed', message: `the agent threw ${String(error)}` }
  const where = error.stack?.split('\n').find((line) => line.trim() !== '')
  const code = /out of memory/.test(error.message) ? 'guest-memory' : 'guest-failed'
  return {
    code,
    message: `${error.name}: ${error.message}${where === undefined ? '' : ` (${where.trim()})`}`,
  }
}
