/** The thread in which a guest runs. It holds one guest at a time and is used again when that one is dropped. */
import { parentPort } from 'node:worker_threads'
import { BatonError } from '@baton/shared/errors.ts'
import { computeBaseline } from './baseline.ts'
import { Guest, type Slice } from './guest.ts'
import type { Answer, Answers, GuestParts, Limits, Question } from './messages.ts'

let guest: Guest | undefined
let stop = new Int32Array(new SharedArrayBuffer(4))

function open(parts: GuestParts): Guest {
  stop = new Int32Array(parts.stop)
  guest = new Guest(parts)
  return guest
}

function current(): Guest {
  if (guest === undefined) throw new BatonError('guest-state', '(no guest is open)')
  return guest
}

function slice({ ms, fuel }: Limits): Slice {
  const until = ms === undefined ? Infinity : performance.now() + ms
  return {
    ...(fuel !== undefined && { fuel }),
    shouldStop: () => Atomics.load(stop, 0) !== 0 || performance.now() >= until,
  }
}

function answer(question: Question): Answers[keyof Answers] {
  switch (question.op) {
    case 'baseline':
      return computeBaseline(question.module, question.bundle)
    case 'open':
      return open(question.parts).header
    case 'restore':
      return open(question.parts).restore(question.chain)
    case 'deliver':
      return current().deliver(question.message, slice(question.limits))
    case 'run':
      return current().run(slice(question.limits))
    case 'snapshot':
      return current().snapshot({ full: question.full })
    case 'drop':
      guest = undefined
      return null
  }
}

parentPort?.on('message', (question: Question) => {
  let reply: Answer
  try {
    reply = { ok: true, value: answer(question) }
  } catch (error) {
    const coded = error instanceof BatonError
    const detail = coded ? error.detail : error instanceof Error ? error.message : String(error)
    reply = { ok: false, code: coded ? error.code : undefined, detail }
  }
  parentPort?.postMessage(reply)
})
