/** A session that is asked to leave: why and where to, what it still waits for, and then its last steps here. */
import type { Placement } from '@baton/shared/protocol.ts'
import { cutHere } from './asks.ts'
import type { Departure } from './departure.ts'
import type { Effects } from './effects.ts'
import type { Draft } from './journal.ts'
import type { Live } from './live.ts'
import { statusOf } from './state.ts'
import { storeFiles, type StoredFiles } from './stored-files.ts'
import type { SavingTurns } from './urgency.ts'

export interface Leave {
  /** `room`: it has computed for long, and others wait for its place. */
  why: 'move' | 'shutdown' | 'room'
  place?: Placement
  label?: string
  /** Running effects may finish within this time, in milliseconds; what still runs then is cut off. */
  within_ms: number
  /** Many leave at once, in a hurry: each saves when it is its turn. */
  turns?: SavingTurns
}

/** A leave under way. */
export interface Leaving extends Leave {
  /** On the monotonic clock. */
  until: number
  /** The journal tells that the session waits for what runs. */
  told: boolean
  files?: Promise<StoredFiles>
  stored?: StoredFiles
}

/** What leaving needs of the session. */
export interface LeaveHands {
  /** Id of this runner's device. */
  device: string
  effects: Effects
  departure: Departure
  /** The guest computes. */
  isBusy: () => boolean
  append: (drafts: Draft[]) => Promise<void>
  /** Gets the files once they are being stored; what becomes of them is to be put into `leaving.stored`. */
  storing: (files: Promise<StoredFiles>) => void
  /** Writes the outcomes of effects that ended while the rest was on its way. */
  writeEnded: () => Promise<void>
  /** Comes back after this time, in milliseconds. */
  wakeIn: (ms: number) => void
}

/** A leave begins, or one under way has to hurry. */
export function begun(before: Leaving | undefined, leave: Leave): Leaving {
  const until = performance.now() + leave.within_ms
  const leaving = before ?? { ...leave, until, told: false }
  leaving.until = Math.min(leaving.until, until)
  if (leave.turns) leaving.turns ??= leave.turns
  return leaving
}

/** Does what can be done now towards letting go. */
export async function advanceLeave(live: Live, leave: Leaving, hands: LeaveHands): Promise<void> {
  const { effects } = hands
  for (const effect of effects.cutWaiting()) live.toStart.set(effect, 'first')
  const left_ms = leave.until - performance.now()
  // A sleep goes on there just as well.
  const waits = left_ms > 0 ? effects.kinds.filter((kind) => kind !== 'sleep') : []
  // In a hurry the files are stored while a model still answers: it does not change them.
  if (!leave.files && (waits.length === 0 || (leave.turns && !waits.includes('tool')))) {
    const cutsTool = effects.kinds.includes('tool')
    // The files first, while the guest may still compute: the time in which it runs nowhere gets shorter.
    const cut = waits.length === 0 ? effects.cut() : []
    leave.files = storeFiles(live, hands.device, cutsTool, leave.turns)
    hands.storing(leave.files)
    await hands.append(cutHere(live, cut, Date.now()))
  }
  if (waits.length > 0) {
    hands.wakeIn(left_ms)
    if (leave.told || leave.why !== 'move') return
    leave.told = true
    await hands.append([{ kind: 'event', body: { type: 'moving', data: { to: leave.label ?? '', waits } } }])
    return
  }
  await hands.append(cutHere(live, effects.cut(), Date.now()))
  if (!leave.stored) return
  if (hands.isBusy()) {
    live.harness.interrupt()
    return
  }
  // What ended while this was on its way is not to be done again there.
  await hands.writeEnded()
  const rests =
    live.state.queue.length === 0 && live.carried.length === 0 && live.pause.state !== 'interrupted'
  // Whatever it waits for, it also has work.
  const status = leave.why === 'move' ? 'moving' : rests ? statusOf(live.state, false) : 'running'
  await hands.departure.letGo(live, leave.stored, 'handed-off', status, leave.place)
}
