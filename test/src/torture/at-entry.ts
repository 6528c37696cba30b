/**
 * Preloaded into a runner (`node --import`): stops it right after entry TORTURE_AT of any journal is durable, before it hears of it.
 * TORTURE_HOW=kill: by SIGKILL. TORTURE_HOW=hold: the relay's answer is held back until the file TORTURE_RELEASE exists; the file
 * TORTURE_REACHED then tells that the place is reached.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { Connection } from '@baton/shared/connection.ts'
import type { AskGives, AskName, AskWith } from '@baton/shared/protocol.ts'

const at = Number(process.env['TORTURE_AT'])
const { TORTURE_HOW: how, TORTURE_RELEASE: release = '', TORTURE_REACHED: reached = '' } = process.env

let isReached = false

if (isMainThread && at > 0) {
  const ask = Reflect.get(Connection.prototype, 'ask') as (...args: unknown[]) => Promise<unknown>
  Connection.prototype.ask = async function <N extends AskName>(
    this: Connection,
    what: N,
    with_: AskWith<N>,
    timeout_ms?: number,
  ): Promise<AskGives<N>> {
    const answer = (await Reflect.apply(ask, this, [what, with_, timeout_ms])) as AskGives<N>
    if ((what === 'append' || what === 'claim') && !isReached && lastSeq(answer) >= at) {
      isReached = true
      if (how === 'kill') process.kill(process.pid, 'SIGKILL')
      writeFileSync(reached, '')
      while (!existsSync(release)) await sleep(5)
    }
    return answer
  }
}

function lastSeq(answer: unknown): number {
  return typeof answer === 'object' && answer !== null && 'seq' in answer ? Number(answer.seq) : 0
}
