/** What doctor looks at on the way to the relay: HTTP, the socket end to end, the clock, this device, the runners. */
import { Connection, type ConnectionState } from '@baton/shared/connection.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { SOCKET_PATH, type AskGives } from '@baton/shared/protocol.ts'
import { isLeaving, roomWords } from '@baton/shared/view/runners.ts'
import { duration, size } from '@baton/shared/view/units.ts'
import type { Identity, RelayFile } from '../../daemon/identity.ts'
import type { Listed } from '../account.ts'
import { cleanLine } from '../term/text.ts'
import { ok, problem, warning, type Finding } from './check.ts'

const HTTP_MS = 5000
export const HANDSHAKE_MS = 6000
const SKEW_MS = 60_000
/** From this share on an account is told. */
const TIGHT = 0.9

type Usage = AskGives<'usage'>

export interface Health {
  finding: Finding
  /** The relay's clock minus ours; undefined: it did not answer. A second is as exact as HTTP is. */
  skew_ms?: number
}

export async function health(origin: string): Promise<Health> {
  const asked_at = Date.now()
  try {
    const response = await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(HTTP_MS) })
    const answered_at = Date.now()
    const date = Date.parse(response.headers.get('date') ?? '')
    const skew = Number.isNaN(date) ? {} : { skew_ms: date - (asked_at + answered_at) / 2 }
    const body = (await response.json().catch(() => ({}))) as { status?: unknown; code?: unknown }
    if (response.ok && body.status === 'ok')
      return { finding: ok(`${origin} answers in ${duration(answered_at - asked_at)}`), ...skew }
    if (body.status === 'starting')
      return { finding: warning(`${origin} is starting.`, 'Try again in a moment.'), ...skew }
    const code = typeof body.code === 'string' ? body.code : `HTTP ${response.status}`
    const isOurs = typeof body.code === 'string'
    const todo = isOurs
      ? 'See the log of the relay.'
      : 'Check the address: something else answers there, or a proxy in between.'
    return { finding: problem(`${origin} answers, but not well: ${cleanLine(code)}.`, todo), ...skew }
  } catch (error) {
    return { finding: unreachable(origin, error) }
  }
}

function unreachable(origin: string, error: unknown): Finding {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (error instanceof Error && error.name === 'TimeoutError')
    return problem(
      `${origin} takes connections and did not answer within ${duration(HTTP_MS)}.`,
      'The relay hangs, or a firewall swallows it: restart the relay; check the network.',
    )
  if (code === 'ECONNREFUSED')
    return problem(`Nothing listens at ${origin}.`, 'Start it: baton up — or check address and port.')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return problem(
      `The name in ${origin} is not known here.`,
      'Check the address and this machine’s network.',
    )
  return problem(
    `${origin} can not be reached (${code || String(error)}).`,
    'Check the network between here and there.',
  )
}

/** Signs in and asks something, as every device does (F6): a green light that only pings would prove nothing. */
export async function socket(
  { origin, about }: RelayFile,
  identity: Identity,
  read: (connection: Connection) => Promise<Listed>,
): Promise<{ finding: Finding; listed?: Listed; usage?: Usage | undefined }> {
  const began_at = performance.now()
  const settled = Promise.withResolvers<ConnectionState>()
  const connection = new Connection({
    ...{ origin, ...identity, about: about ?? { name: 'doctor', kind: 'cli' } },
    handshake_ms: HANDSHAKE_MS,
    onState: (state) => {
      if (state.at !== 'connecting' && state.at !== 'closed') settled.resolve(state)
    },
  })
  connection.start()
  try {
    const state = await settled.promise
    if (state.at === 'refused') return { finding: refused(new BatonError(state.code, state.message)) }
    if (state.at !== 'open') {
      const why = state.at === 'waiting' ? cleanLine(state.reason) : ''
      return {
        finding: problem(
          `${origin.replace(/^http/, 'ws')}${SOCKET_PATH} does not open: ${why}`,
          'When HTTP works and this does not, a proxy in between must pass WebSocket upgrades on.',
        ),
      }
    }
    const listed = await read(connection)
    const finding = ok(`signed in and answered in ${duration(performance.now() - began_at)}`)
    return { finding, listed, usage: await usageOf(connection) }
  } catch (error) {
    return {
      finding: problem(error instanceof Error ? error.message : String(error), 'See the log of the relay.'),
    }
  } finally {
    connection.close()
  }
}

/** A relay of before this was asked does not know. */
async function usageOf(connection: Connection): Promise<Usage | undefined> {
  return connection.ask('usage', {}).catch((error: unknown) => {
    if (error instanceof BatonError && error.code === 'unknown-message') return undefined
    throw error
  })
}

/** What the account has of what the relay lets it have. */
export function limits(usage: Usage | undefined): Finding {
  if (!usage) return ok('this relay does not tell: it is of an older version')
  const { sessions, sessions_max, bytes, bytes_max, frames_per_s } = usage
  const says = `${sessions} of ${sessions_max} sessions, ${size(bytes)} of ${size(bytes_max)} stored; ${frames_per_s} frames a second`
  const tight = [
    ...(sessions >= sessions_max * TIGHT ? ['--sessions N'] : []),
    ...(bytes >= bytes_max * TIGHT ? ['--storage SIZE'] : []),
  ]
  if (tight.length === 0) return ok(says)
  const todo = `Whoever runs the relay can raise it: baton relay ${tight.join(' ')}`
  const isFull = sessions >= sessions_max || bytes >= bytes_max
  return isFull
    ? problem(`${says}: new ones are refused.`, todo)
    : warning(`${says}: that is nearly all.`, todo)
}

function refused(error: BatonError): Finding {
  return problem(`The relay refuses this device: ${cleanLine(error.message)}`, error.todo)
}

export function clock(skew_ms: number | undefined): Finding {
  if (skew_ms === undefined) return warning('Not compared: the relay does not answer.', 'Mend that first.')
  const away = Math.abs(skew_ms)
  const words = `${duration(away)} ${skew_ms > 0 ? 'behind' : 'ahead of'} the relay`
  if (away <= SKEW_MS) return ok(away < 2000 ? 'agrees with the relay' : words)
  return warning(
    `This clock is ${words}.`,
    'Nothing breaks, but times shown are wrong: turn on time synchronisation (timedatectl set-ntp true).',
  )
}

export function device(listed: Listed, id: string): Finding {
  const known = listed.devices.find((one) => one.device === id)
  if (known?.revoked === true)
    return problem('This device was removed from the account.', 'Join again: baton runner --join LINK')
  const others = listed.devices.filter((one) => !one.revoked && one.device !== id).length
  return ok(`${cleanLine(known?.about.name ?? 'this device')}; ${others} more in the account`)
}

export function runners({ runners: all, sessions }: Listed): Finding {
  const online = all.filter((runner) => runner.online)
  const start = 'Start one: baton up — or: baton runner --workspace DIR'
  if (online.length === 0) {
    const waits = sessions.filter(
      ({ status, pending }) => status === 'running' || status === 'moving' || pending > 0,
    ).length
    const away = all.length === 0 ? 'There is no runner.' : `None of ${all.length} runners is online.`
    return waits > 0 ? problem(`${away} ${waits} sessions wait for one.`, start) : warning(away, start)
  }
  const words = online.map((runner) => {
    const room = isLeaving(runner) ? 'leaving' : roomWords(runner)
    return `${runner.about.name} (${runner.about.platform}, ${runner.about.model}, ${room})`
  })
  const says = cleanLine(words.join(', '))
  const full = online.every(({ held, capacity }) => held >= capacity)
  return full ? warning(`${says}: all are full.`, 'Start one more, or raise --capacity.') : ok(says)
}
