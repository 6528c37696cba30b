/**
 * The lid of a Mac. What macOS tells of its sleep reaches native code only, so the lid is looked at once a second with `ioreg`,
 * and `caffeinate` asks for time, which macOS grants on mains and not always on battery. A sleep without a shut lid is not
 * foreseen: then leases run out (clock.ts). Not tried on hardware; the reading of `ioreg` is tested with text of its form.
 */
import { execFile, spawn } from 'node:child_process'
import { promisify } from 'node:util'
import type { PowerEvents } from './power.ts'

const run = promisify(execFile)
const EVERY_MS = 1_000
/** What seems to pass between the shut lid and sleep, at least. */
const WITHIN_MS = 2_000
const IOREG = ['-r', '-k', 'AppleClamshellState', '-d', '1']

export interface Lid {
  isShut: boolean
  /** Not so with an external screen: then the Mac stays awake. */
  causesSleep: boolean
}

/** Reads what `ioreg -r -k AppleClamshellState -d 1` prints; undefined for a Mac without a lid. */
export function readLid(text: string): Lid | undefined {
  const flag = (name: string): boolean | undefined => {
    const value = new RegExp(`"${name}" = (Yes|No)`).exec(text)?.[1]
    return value === undefined ? undefined : value === 'Yes'
  }
  const isShut = flag('AppleClamshellState')
  return isShut === undefined ? undefined : { isShut, causesSleep: flag('AppleClamshellCausesSleep') ?? true }
}

export interface LidOptions {
  events: Pick<PowerEvents, 'going' | 'back'>
  log: (message: string) => void
  /** What `ioreg` prints now. */
  look?: () => Promise<string>
  /** Asks the system for so many seconds more. Gives what takes that back. */
  hold?: (seconds: number) => () => void
}

/** Gives what ends it. */
export function watchLid({ events, log, look = ioreg, hold = caffeinate }: LidOptions): () => void {
  let wasSeen = false
  let isGone = false
  let isLooking = false
  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    void look()
      .then(readLid, () => undefined)
      .then((lid) => {
        if (!lid) {
          if (wasSeen) return
          clearInterval(timer)
          log(
            'no notice of sleep on this machine: it has no lid that can be seen; SIGTERM and SIGHUP hand over as well',
          )
          return
        }
        wasSeen = true
        const goes = lid.isShut && lid.causesSleep
        if (goes && !isGone) {
          const letGo = hold(Math.ceil(WITHIN_MS / 1_000))
          events.going('sleep', WITHIN_MS).then(letGo, letGo)
        } else if (!goes && isGone) events.back()
        isGone = goes
      })
      .finally(() => (isLooking = false))
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}

async function ioreg(): Promise<string> {
  return (await run('ioreg', IOREG)).stdout
}

function caffeinate(seconds: number): () => void {
  const child = spawn('caffeinate', ['-i', '-s', '-t', String(seconds)], { stdio: 'ignore' })
  child.on('error', () => undefined)
  return () => void child.kill()
}
