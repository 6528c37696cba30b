/** `baton doctor`: checks the whole way from here to the relay, the runners and the model, and says what to do. */
import type { Connection } from '@baton/shared/connection.ts'
import { explain } from '@baton/shared/errors.ts'
import { loadIdentity, loadRelay, type Identity, type RelayFile } from '../daemon/identity.ts'
import { AccountView, type Listed } from './account.ts'
import { dataFolder, parseFor, servedFolder } from './args.ts'
import { checked, ok, problem, warning, type Check, type Finding } from './doctor/check.ts'
import { configs } from './doctor/config.ts'
import * as machine from './doctor/machine.ts'
import { model } from './doctor/model.ts'
import * as relay from './doctor/relay.ts'
import { print } from './output.ts'
import { coloursOf, painted } from './term/style.ts'
import { wrap, type Line } from './term/text.ts'

const WITHIN_MS = 8000
const LIVE_MS = 25_000
const PORT = 7788
const NO_ACCOUNT = 'Join one: baton runner --join LINK — or start afresh: baton up'

export async function doctor(args: string[]): Promise<number> {
  const { values } = parseFor('doctor', args)
  const named = await Promise.all((values.workspace ?? []).map(servedFolder))
  const checks = await examine(dataFolder(values.data), { live: values.live === true, named })
  const isOk = checks.every(({ state }) => state !== 'problem')
  print(values.json, { ok: isOk, checks }, reportOf(checks))
  return isOk ? 0 : 1
}

/** All checks, at the same time as far as they need nothing of each other. */
async function examine(
  data: string,
  { live, named }: { live: boolean; named: readonly string[] },
): Promise<Check[]> {
  const [identity, file] = await Promise.allSettled([loadIdentity(data), loadRelay(data)])
  const account = accountFinding(identity, file)
  const known = identity.status === 'fulfilled' ? identity.value : undefined
  const at = file.status === 'fulfilled' ? file.value : undefined
  const here = at === undefined || isHere(at.origin)
  const port = at !== undefined && here ? Number(new URL(at.origin).port) || PORT : PORT
  const way = relayChecks(known, at)
  const checks = await Promise.all([
    checked('node', WITHIN_MS, () => machine.node()),
    checked('engine', WITHIN_MS, () => machine.engine()),
    checked('git', WITHIN_MS, () => machine.git()),
    checked('redis', WITHIN_MS, () => machine.redis(here)),
    checked('data', WITHIN_MS, () => machine.dataFolder(data)),
    checked('port', WITHIN_MS, () => machine.port(port, at !== undefined && here)),
    checked('account', WITHIN_MS, async () => account),
    way.then(({ checks: found }) => found),
    way.then(({ folders }) => configs(data, { folders, named }, WITHIN_MS)),
    checked('model', live ? LIVE_MS : WITHIN_MS, () => model(live)),
    checked('sandbox', WITHIN_MS, () => machine.sandbox()),
    checked('sleep', WITHIN_MS, () => machine.sleep()),
    checked('push', WITHIN_MS, async () =>
      warning(
        'This version sends none: a phone hears of what waits while the app is open.',
        'Keep the app open, or watch with: baton ls --watch',
      ),
    ),
  ])
  return checks.flat()
}

function accountFinding(
  identity: PromiseSettledResult<Identity | undefined>,
  file: PromiseSettledResult<RelayFile | undefined>,
): Finding {
  for (const read of [identity, file]) {
    if (read.status === 'rejected')
      return problem(explain(read.reason), 'Restore the file, or join again with another --data.')
  }
  const [known, at] = [identity, file].map((read) => read.status === 'fulfilled' && read.value !== undefined)
  if (!known || !at) return problem('This machine has no account yet.', NO_ACCOUNT)
  return ok(`identity and relay are known`)
}

/** What needs the relay, after each other where one needs the other; and the folders that are served here, as far as it tells. */
async function relayChecks(
  identity: Identity | undefined,
  at: RelayFile | undefined,
): Promise<{ checks: Check[]; folders?: string[] }> {
  if (at === undefined) {
    const none = warning('Not looked at: this machine does not know one.', NO_ACCOUNT)
    return { checks: [{ name: 'relay', ...none }] }
  }
  let skew_ms: number | undefined
  let found: Awaited<ReturnType<typeof relay.socket>> | undefined
  const [http, socket] = await Promise.all([
    checked('relay', WITHIN_MS, async () => {
      const found = await relay.health(at.origin)
      skew_ms = found.skew_ms
      return found.finding
    }),
    checked('socket', WITHIN_MS, async () => {
      if (!identity) return warning('Not tried: there is no identity.', NO_ACCOUNT)
      found = await relay.socket(at, identity, (connection) => read(identity, connection))
      return found.finding
    }),
  ])
  const clock = { name: 'clock', ...relay.clock(skew_ms) }
  const { listed, usage } = found ?? {}
  if (!listed || !identity) return { checks: [http, socket, clock] }
  const here = listed.runners.find((one) => one.device === identity.device.id)
  const checks = [
    ...[http, socket, clock],
    { name: 'device', ...relay.device(listed, identity.device.id) },
    { name: 'limits', ...relay.limits(usage) },
    { name: 'runners', ...relay.runners(listed) },
  ]
  return { checks, folders: here?.about.workspaces.map(({ path }) => path) ?? [] }
}

async function read(identity: Identity, connection: Connection): Promise<Listed> {
  return AccountView.namesOf(identity, await connection.ask('list', {}))
}

function isHere(origin: string): boolean {
  const { hostname } = new URL(origin)
  return ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
}

const MARKS: Record<Finding['state'], Line> = {
  ok: [{ text: '✓ ', as: 'green' }],
  warning: [{ text: '! ', as: 'yellow' }],
  problem: [{ text: '✗ ', as: 'bold red' }],
}
const NAME_COLUMNS = 9

function reportOf(checks: readonly Check[]): string {
  const { stdout, env } = process
  const colours = coloursOf(env, stdout.isTTY)
  const width = stdout.columns || 110
  const indent: Line = [{ text: ' '.repeat(NAME_COLUMNS + 2) }]
  const lines = checks.flatMap(({ name, state, says, todo }) => [
    ...wrap(
      [{ text: says }],
      width,
      [...MARKS[state], { text: name.padEnd(NAME_COLUMNS), as: 'bold' }],
      indent,
    ),
    ...(todo === undefined ? [] : wrap([{ text: `→ ${todo}` }], width, indent)),
  ])
  const bad = checks.filter(({ state }) => state === 'problem').length
  const odd = checks.filter(({ state }) => state === 'warning').length
  const sum =
    bad > 0
      ? `${bad} to mend${odd > 0 ? `, ${odd} to know` : ''}.`
      : odd > 0
        ? `It works; ${odd} to know.`
        : 'All is well.'
  return [...lines.map((line) => painted(line, colours)), '', sum].join('\n')
}
