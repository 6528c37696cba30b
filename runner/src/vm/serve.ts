/** The thread in which guests run: it holds many, one WebAssembly instance each (F54), and runs one at a time. */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { BatonError } from '@baton/shared/errors.ts'
import { computeBaseline } from './baseline.ts'
import { Guest } from './guest.ts'
import { BELL, type Answer, type Answers, type Asked, type GuestParts, type ThreadData } from './messages.ts'
import { Turns } from './turns.ts'

const port = parentPort
if (!port) throw new Error('this module runs in a worker thread')

const bell = new Int32Array((workerData as ThreadData).bell)
const guests = new Map<number, { guest: Guest; stop: Int32Array }>()
let taken = 0
/** How often it had rung when this thread last looked at its mail. */
let heard = 0

const turns = new Turns({
  isUrgent: () => Atomics.load(bell, BELL.urgent) !== heard,
  isWanted: () => Atomics.load(bell, BELL.posted) !== taken,
  now: () => performance.now(),
})

function open(number: number, parts: GuestParts): Guest {
  const guest = new Guest(parts)
  guests.set(number, { guest, stop: new Int32Array(parts.stop) })
  return guest
}

function known(number: number): { guest: Guest; stop: Int32Array } {
  const held = guests.get(number)
  if (!held) throw new BatonError('guest-state', '(no guest is open)')
  return held
}

function drop(number: number): null {
  const held = guests.get(number)
  guests.delete(number)
  if (held) turns.remove(held.guest)?.fail(new BatonError('guest-state', '(it was closed)'))
  return null
}

function take({ re, question }: Asked): void {
  taken++
  const settle = (value: Answers[keyof Answers]): void => post({ re, ok: true, value })
  const fail = (error: unknown): void => post({ re, ok: false, ...told(error) })
  try {
    switch (question.op) {
      case 'baseline':
        return settle(computeBaseline(question.module, question.bundle))
      case 'open':
        return settle(open(question.guest, question.parts).header)
      case 'restore':
        return settle(open(question.guest, question.parts).restore(question.chain))
      case 'deliver':
        return turns.add({ ...question, ...known(question.guest), settle, fail })
      case 'run':
        return turns.add({ limits: question.limits, ...known(question.guest), settle, fail })
      case 'snapshot':
        return settle(known(question.guest).guest.snapshot(question.options))
      case 'drop':
        return settle(drop(question.guest))
    }
  } catch (error) {
    fail(error)
  }
}

function post(answer: Answer): void {
  port?.postMessage(answer)
}

function told(error: unknown): Pick<Extract<Answer, { ok: false }>, 'code' | 'detail'> {
  if (error instanceof BatonError) return { code: error.code, detail: error.detail }
  return { code: undefined, detail: error instanceof Error ? error.message : String(error) }
}

port.on('message', (first: Asked) => {
  take(first)
  // The event loop stands still meanwhile, so the mail is fetched by hand between two slices.
  for (;;) {
    heard = Atomics.load(bell, BELL.urgent)
    for (let mail = receiveMessageOnPort(port); mail; mail = receiveMessageOnPort(port))
      take(mail.message as Asked)
    if (turns.size === 0) return
    turns.step()
    Atomics.store(bell, BELL.slices, turns.slices)
  }
})
