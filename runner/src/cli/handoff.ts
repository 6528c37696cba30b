/** `baton handoff`: moves a session to another runner, and shows how it gets there. */
import { BatonError } from '@baton/shared/errors.ts'
import { poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import type { Read } from '@baton/shared/view/entry.ts'
import { isTaking } from '@baton/shared/view/runners.ts'
import { targetOf as targetOfCall } from '@baton/shared/view/call.ts'
import { EMPTY, type Transcript } from '@baton/shared/view/transcript.ts'
import { duration, size } from '@baton/shared/view/units.ts'
import { withAccount, type AccountView, type NamedRunner, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { Follow } from './follow.ts'
import { print } from './output.ts'
import { meant } from './similar.ts'
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
    await followMove(
      view,
      session,
      { where, label, nameOf: (device) => names.get(device) ?? device.slice(0, 8) },
      say,
    )
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

type Step =
  | { step: 'asked'; to: string; online: boolean }
  | { step: 'waits'; for: string[] }
  | { step: 'saved'; bytes: number }
  | { step: 'expired' }
  | { step: 'moved'; to: string }
type Say = (step: Step, at_ms: number, words: string) => void

function sayer(json: boolean | undefined): Say {
  return (step, at_ms, words) =>
    print(json, { ...step, at_ms }, `${duration(at_ms).padStart(7)}  ${cleanLine(words)}`)
}

interface Move {
  where: Placement
  label: string
  nameOf: (device: string) => string
}

/** Sends the move and resolves once another runner, or whoever takes it, has claimed the session. */
async function followMove(view: AccountView, session: NamedSession, move: Move, say: Say): Promise<void> {
  const { sid, seq } = session
  const { where, label, nameOf } = move
  const began_at = performance.now()
  const since = (): number => Math.round(performance.now() - began_at)
  const moved = Promise.withResolvers<void>()
  let told = Promise.resolve()
  /** In order, though words may have to be looked up. */
  const tell = (step: Step, words: string | Promise<string>): void => {
    const at_ms = since()
    told = told.then(async () => say(step, at_ms, await words))
  }
  let isReleased = session.holder === undefined
  let bytes: number | undefined
  /** A call by what it does. */
  const inWords = async (waits: string[]): Promise<string> => {
    const calls = waits.includes('tool') ? runningCalls(await view.transcript(sid).catch(() => EMPTY)) : []
    return waits.flatMap((what) => (what === 'tool' && calls.length > 0 ? calls : [what])).join(', ')
  }
  const onEntry = (entry: Read): void => {
    if (entry.kind === 'event' && entry.body.type === 'moving') {
      const waits = waitsIn(entry.body.data)
      if (waits.length > 0)
        tell(
          { step: 'waits', for: waits },
          inWords(waits).then((words) => `waits until this has ended: ${words}`),
        )
    } else if (entry.kind === 'snapshot') {
      bytes = entry.body.bytes
    } else if (entry.kind === 'lease') {
      const { change } = entry.lease
      if (change === 'released') {
        // Let go only after everything is stored.
        const what = bytes === undefined ? 'nothing had changed' : size(bytes)
        tell({ step: 'saved', bytes: bytes ?? 0 }, `saved: ${what}`)
      } else if (change === 'expired') {
        tell({ step: 'expired' }, 'its runner does not answer; the lease ran out')
      }
      if (change !== 'claimed') isReleased = true
      else if (isReleased) {
        const to = nameOf(entry.lease.holder)
        const other = where.prefer !== undefined && entry.lease.holder !== where.prefer
        const instead = other ? ` (${label} did not take it)` : ''
        tell({ step: 'moved', to }, `moved to ${to}${instead}`)
        moved.resolve()
      }
    } else if (entry.kind === 'event' && entry.body.type === 'failed') {
      moved.reject(new BatonError('session-ended', '(it failed before it could be moved)'))
    }
  }
  using _follow = new Follow(view, sid, seq, { onEntry, onRefused: (error) => moved.reject(error) })
  await view.command(sid, 'move', { label }, { place: where })
  const { runners } = await view.list()
  const { online } = { online: runners.some((runner) => runner.online && isTarget(runner, where)) }
  const away = online ? '' : ', which is not online: whoever else may take it does'
  tell({ step: 'asked', to: label, online }, `asked to move to ${label}${away}`)
  await moved.promise
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

function waitsIn(data: unknown): string[] {
  if (typeof data !== 'object' || data === null || !('waits' in data) || !Array.isArray(data.waits)) return []
  return data.waits.map((what) => (what === 'llm' ? 'the model’s answer' : String(what)))
}
