/** `baton handoff`: moves a session to another runner, and shows how it gets there. */
import { BatonError } from '@baton/shared/errors.ts'
import { newId, poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import type { Read } from '@baton/shared/view/entry.ts'
import { isTaking } from '@baton/shared/view/runners.ts'
import { targetOf as targetOfCall } from '@baton/shared/view/call.ts'
import { EMPTY, type Transcript } from '@baton/shared/view/transcript.ts'
import { duration, size } from '@baton/shared/view/units.ts'
import { withAccount, type AccountView, type NamedRunner, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { Follow } from './follow.ts'
import { ENDS, MoveReading, type Step } from './move-steps.ts'
import { print } from './output.ts'
import { meant } from '../similar.ts'
import { cleanLine, cut } from './term/text.ts'

/** Of a call's target, in a line of the terminal. */
const CALL_COLUMNS = 50

/** Moves a session to another runner, by name or pool; without --to, to any other that is online. */
export async function handoff(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('handoff', args)
  return withAccount(values.data, async (view) => {
    const session = await view.find(positionals[0])
    const { sid, holder } = session
    const { runners } = await view.list()
    const { where, label } = targetOf(view, runners, values.to, holder)
    if (where.prefer !== undefined && where.prefer === holder) {
      print(values.json, { sid, to: label }, `It is on ${label} already.`)
      return 0
    }
    if (values['no-wait'] === true) {
      await view.command(sid, 'move', { label }, { place: where })
      print(values.json, { sid, to: label }, `Moving to ${label}.`)
      return 0
    }
    const say = sayer(values.json)
    const names = new Map(runners.map(({ device, about }) => [device, about.name]))
    const nameOf = (device: string): string => names.get(device) ?? device.slice(0, 8)
    const online = runners.some((runner) => runner.online && isTarget(runner, where))
    await followMove(view, session, { where, label, online, nameOf }, say)
    return 0
  })
}

/** Where a move may go. Throws BatonError `no-runner`. */
export function targetOf(
  view: AccountView,
  runners: readonly NamedRunner[],
  to: string | undefined,
  holder: string | undefined,
): { where: Placement; label: string } {
  const others = runners.filter((runner) => isTaking(runner) && runner.device !== holder)
  const named = runners.filter(({ about }) => about.name === to)
  const newest = named.toSorted((a, b) => Number(b.online) - Number(a.online) || b.since - a.since)[0]
  const runner = to === undefined ? others[0] : newest
  if (runner) return { where: { prefer: runner.device }, label: runner.about.name }
  if (to === undefined) throw new BatonError('no-runner', 'No other one is online.')
  if (!runners.some(({ about }) => about.pools.includes(to))) {
    const known = [...new Set(runners.flatMap(({ about }) => [about.name, ...about.pools]))]
    const listed = known.length === 0 ? 'There is none at all' : `There are: ${known.join(', ')}`
    throw new BatonError('no-runner', `There is no runner or pool ${to}. ${listed}.${meant(to, known)}`)
  }
  return { where: { pool: poolTag(view.identity.account, to) }, label: to }
}

type Say = (step: Step, at_ms: number, words: string) => void

function sayer(json: boolean | undefined): Say {
  return (step, at_ms, words) =>
    print(json, { ...step, at_ms }, `${duration(at_ms).padStart(7)}  ${cleanLine(words)}`)
}

interface Move {
  where: Placement
  label: string
  /** Is anybody there who may take it? */
  online: boolean
  nameOf: (device: string) => string
}

/** Sends the move and resolves once another runner, or whoever takes it, has claimed the session, or it turns out to be there already. */
async function followMove(view: AccountView, session: NamedSession, move: Move, say: Say): Promise<void> {
  const { sid, seq, holder } = session
  const { where, label, online, nameOf } = move
  const began_at = performance.now()
  const ended = Promise.withResolvers<void>()
  const sent = Promise.withResolvers<void>()
  let told = sent.promise
  /** In order, though words may have to be looked up, and what was asked for comes first. */
  const tell = (step: Step, words: string | Promise<string>): void => {
    const at_ms = Math.round(performance.now() - began_at)
    told = told.then(async () => say(step, at_ms, await words))
  }
  /** A call by what it does. */
  const inWords = async (waits: string[]): Promise<string> => {
    const calls = waits.includes('tool') ? runningCalls(await view.transcript(sid).catch(() => EMPTY)) : []
    return waits.flatMap((what) => (what === 'tool' && calls.length > 0 ? calls : [what])).join(', ')
  }
  const wordsOf = (step: Step): string | Promise<string> => {
    switch (step.step) {
      case 'asked':
        return `asked to move to ${label}${step.online ? '' : ', which is not online: whoever else may take it does'}`
      case 'waits':
        return inWords(step.for).then((words) => `waits until this has ended: ${words}`)
      case 'saved':
        return `saved: ${step.bytes === 0 ? 'nothing had changed' : size(step.bytes)}`
      case 'expired':
        return 'its runner does not answer; the lease ran out'
      case 'moved': {
        const isOther = where.prefer !== undefined && step.to !== where.prefer
        return `moved to ${nameOf(step.to)}${isOther ? ` (${label} did not take it)` : ''}`
      }
      case 'stays':
        return `it is there already: ${nameOf(step.to)} is of ${label}`
    }
  }
  const command = newId()
  const reading = new MoveReading(command, holder)
  const onEntry = (entry: Read): void => {
    try {
      const step = reading.read(entry)
      if (!step) return
      tell('to' in step ? { ...step, to: nameOf(step.to) } : step, wordsOf(step))
      if (ENDS.has(step.step)) ended.resolve()
    } catch (error) {
      ended.reject(error)
    }
  }
  // Whatever fails below is told first.
  ended.promise.catch(() => undefined)
  using _follow = new Follow(view, sid, seq, { onEntry, onRefused: (error) => ended.reject(error) })
  await view.command(sid, 'move', { label }, { place: where, id: command })
  const asked: Step = { step: 'asked', to: label, online }
  say(asked, Math.round(performance.now() - began_at), await wordsOf(asked))
  sent.resolve()
  await ended.promise
  await told
}

/** `bash (npm test)` */
export function runningCalls({ items }: Pick<Transcript, 'items'>): string[] {
  return items.flatMap((item) => {
    if (item.kind !== 'tool' || item.state !== 'running') return []
    const target = targetOfCall(item.name, item.input)
    return [target === '' ? item.name : `${item.name} (${cut(cleanLine(target), CALL_COLUMNS)})`]
  })
}

function isTarget({ device, tags }: NamedRunner, { prefer, pool }: Placement): boolean {
  return prefer === device || (pool !== undefined && tags.includes(pool))
}
