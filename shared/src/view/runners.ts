/** What is said of the room that a runner has. Pure. */
import type { RunnerInfo } from '../protocol.ts'

type Room = Pick<RunnerInfo, 'online' | 'held' | 'capacity'>

/** It gives its sessions back and then ends: it takes no others. */
export function isLeaving({ online, capacity }: Pick<Room, 'online' | 'capacity'>): boolean {
  return online && capacity === 0
}

/** May it be given a session now? */
export function isTaking({ online, capacity }: Pick<Room, 'online' | 'capacity'>): boolean {
  return online && capacity > 0
}

/** `online`, `leaving`, `away`. */
export function presenceWords(runner: Pick<Room, 'online' | 'capacity'>): 'online' | 'leaving' | 'away' {
  if (isLeaving(runner)) return 'leaving'
  return runner.online ? 'online' : 'away'
}

/** `2 of 4`; of one that is leaving only what it still holds. */
export function roomWords(runner: Room): string {
  return isLeaving(runner) ? String(runner.held) : `${runner.held} of ${runner.capacity}`
}
