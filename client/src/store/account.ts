/** Runners and devices of the account, with their opened names. Pure. */
import type { ConnectionState } from '@baton/shared/connection.ts'
import type { DeviceAbout, RunnerAbout } from '@baton/shared/journal.ts'
import type { DeviceInfo, Notice, RunnerInfo } from '@baton/shared/protocol.ts'
import { isTaking } from '@baton/shared/view/runners.ts'
import type { Seen } from './db.ts'

/** `about` is undefined when this device can't read it. */
export type Runner = RunnerInfo & { about: RunnerAbout | undefined }
export type NamedDevice = DeviceInfo & { about: DeviceAbout | undefined }

/** The account after a notice: what it names is replaced or added. */
export function merged(seen: Seen, notice: Extract<Notice, { t: 'session' | 'runner' | 'device' }>): Seen {
  switch (notice.t) {
    case 'session': {
      const { session } = notice
      return { ...seen, sessions: replaced(seen.sessions, session, (other) => other.sid === session.sid) }
    }
    case 'runner': {
      const { runner } = notice
      return { ...seen, runners: replaced(seen.runners, runner, (other) => other.device === runner.device) }
    }
    case 'device': {
      const { device } = notice
      return { ...seen, devices: replaced(seen.devices, device, (other) => other.device === device.device) }
    }
  }
}

/** The devices that are in, each always in its place: by when it was paired. */
export function devicesInOrder(devices: readonly NamedDevice[]): NamedDevice[] {
  return devices
    .filter(({ revoked }) => !revoked)
    .toSorted((a, b) => a.added_at - b.added_at || (a.device < b.device ? -1 : 1))
}

function replaced<T>(list: readonly T[], value: T, same: (other: T) => boolean): T[] {
  const index = list.findIndex(same)
  return index < 0 ? [...list, value] : list.with(index, value)
}

/** Name of a runner or device; the start of its key when this device can't read it. */
export function nameOf(id: string, runners: readonly Runner[], devices: readonly NamedDevice[] = []): string {
  return (
    runners.find((runner) => runner.device === id)?.about?.name ??
    devices.find((device) => device.device === id)?.about?.name ??
    id.slice(0, 6)
  )
}

/** Names of the pools that runners announce, each once, with how many of their runners are online and stay so. */
export function poolsOf(runners: readonly Runner[]): { name: string; online: number }[] {
  const pools = new Map<string, number>()
  for (const runner of runners) {
    for (const pool of runner.about?.pools ?? [])
      pools.set(pool, (pools.get(pool) ?? 0) + (isTaking(runner) ? 1 : 0))
  }
  return [...pools].map(([name, online]) => ({ name, online }))
}

/** Why this device can send nothing to the account any more; undefined while it may. */
export function removedWords(connection: ConnectionState): string | undefined {
  const out = connection.at === 'refused' && connection.code === 'device-revoked'
  return out ? 'This device was removed and can send nothing more.' : undefined
}

/** Shown with a cloud: it says so itself, by the pool that it serves. */
export function isCloud(runner: Pick<Runner, 'about'>): boolean {
  return runner.about?.pools.includes('cloud') ?? false
}
