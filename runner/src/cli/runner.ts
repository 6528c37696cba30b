/** `baton runner`: holds sessions on this machine until it is told to end. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { RunnerAbout } from '@baton/shared/journal.ts'
import { takePairing } from '@baton/shared/pairing.ts'
import { duration } from '@baton/shared/view/units.ts'
import { lockData } from '../daemon/data-lock.ts'
import { createHands } from '../daemon/hands.ts'
import {
  loadIdentity,
  loadRelay,
  newIdentity,
  prepareData,
  saveIdentity,
  saveRelay,
} from '../daemon/identity.ts'
import { objectionToSandbox } from '../daemon/equip.ts'
import { metricsAddress, serveMetrics, type RunningMetrics } from '../daemon/metrics.ts'
import { defaultName, Runner } from '../daemon/runner.ts'
import { modelDoubt } from '../model/names.ts'
import { watchPower } from '../power/power.ts'
import { address, dataFolder, milliseconds, number, parseFor, servedFolder } from './args.ts'
import { runnerName } from './runner-name.ts'
import { secondRunner, type RunnerFlags } from './second-runner.ts'

const LAPTOP_CAPACITY = 4
const POOL_CAPACITY = 8
const PARK_AFTER_MS = 30_000
const FINISH_WITHIN_MS = 120_000
/** What an operating system grants between SIGTERM and SIGKILL is often ten seconds. */
export const DRAIN_WITHIN_MS = 5_000
export const DRAIN_LATE_MS = 5_000

export async function runner(args: string[]): Promise<number> {
  const { values } = parseFor('runner', args)
  const metricsAt = values.metrics === undefined ? undefined : metricsAddress(values.metrics)
  const data = dataFolder(values.data)
  const pools = values.pool ?? []
  const capacity = number(
    '--capacity',
    values.capacity,
    pools.length > 0 ? POOL_CAPACITY : LAPTOP_CAPACITY,
    1,
    1000,
  )
  const relay = values.relay === undefined ? undefined : address('--relay', values.relay)
  const folders = await Promise.all((values.workspace ?? []).map(servedFolder))
  await prepareData(data)
  await using _held = await lockFor(values, data)
  if (values.join !== undefined) await joinAccount(data, values.join)
  const origin = relay ?? (await loadRelay(data))?.origin
  if (origin === undefined) throw new BatonError('no-identity')
  // Told a relay and nothing else, this is the first device of a new account.
  const identity = (await loadIdentity(data)) ?? (relay === undefined ? undefined : await newIdentity(data))
  if (!identity) throw new BatonError('no-identity')

  const name = await runnerName(data, values.name)
  const hands = await createHands({
    ...{ data, folders, env: process.env, name, sandbox: values.sandbox ?? false },
    park_after_ms: milliseconds('BATON_PARK_AFTER_MS', PARK_AFTER_MS),
    finish_within_ms: milliseconds('BATON_FINISH_WITHIN_MS', FINISH_WITHIN_MS),
  })
  const workspaces: RunnerAbout['workspaces'] = folders.map((path) => ({ path, name: basename(path) }))
  // Other commands of this machine sign in as the same device.
  await saveRelay(data, { origin, about: { name, kind: pools.length > 0 ? 'cloud' : 'laptop' } })
  const log = logger(name, values.json === true)
  const objection = values.sandbox ? await objectionToSandbox(data, process.env) : undefined
  if (objection) log(explain(objection))
  let refuse = (_error: BatonError): void => undefined
  const refused = new Promise<never>((_resolve, reject) => (refuse = reject))
  refused.catch(() => undefined)
  const onState = watchState(log, refuse)
  const running = new Runner({
    ...identity,
    origin,
    name,
    pools,
    capacity,
    workspaces,
    hands,
    log,
    onState,
  })
  const endWatch = watchPower({
    ...{ platform: process.platform, env: process.env, log },
    events: {
      going: (why, within_ms) => {
        log(`${why} is near, letting all sessions go within ${duration(within_ms)}`)
        return running.sleep(within_ms)
      },
      back: () => {
        log('awake')
        running.wake()
      },
      jumped: (away_ms) => {
        log(`this machine stood still for ${duration(away_ms)}; looking after connection and leases`)
        running.lookAgain()
      },
      network: () => running.lookAgain(),
    },
  })
  let metrics: RunningMetrics | undefined
  const fault = untilFault(log)
  try {
    if (metricsAt) metrics = await serveMetrics(metricsAt, () => running.numbers)
    if (metrics) log(`metrics at ${metrics.url}`)
    await running.start()
    const doubt = hands.model.name === 'anthropic' ? modelDoubt(hands.model.models?.[0] ?? '') : undefined
    if (doubt) log(`${doubt} It is what BATON_MODEL says.`)
    log(`serving${pools.length > 0 ? ` pool ${pools.join(', ')}` : ''}, model: ${hands.model.name}`)
    process.send?.({ t: 'serving' }, undefined, undefined, () => undefined)
    const why = await Promise.race([untilTold(), refused, fault.met])
    log('letting all sessions go; told again, this ends at once')
    endWhenToldAgain(log)
    const within_ms = milliseconds('BATON_DRAIN_WITHIN_MS', DRAIN_WITHIN_MS)
    if (why === 'fault') endAtLast(within_ms + DRAIN_LATE_MS, log)
    await running.drain(within_ms)
    if (why === 'fault') return 1
  } finally {
    endWatch()
    await metrics?.close()
    running.close()
    fault.end()
  }
  return 0
}

/** Throws BatonError `data-in-use`, with what to type for a further runner. */
async function lockFor(flags: RunnerFlags, data: string): Promise<AsyncDisposable> {
  try {
    return await lockData(data)
  } catch (cause) {
    if (!(cause instanceof BatonError) || cause.code !== 'data-in-use') throw cause
    const commands = secondRunner(flags, { data, name: defaultName(), isTaken: existsSync })
    const todo = `Every runner needs a data folder and a pairing link of its own. For one more on this machine:\n\n${commands.replaceAll(/^/gm, '  ')}`
    throw new BatonError(cause.code, cause.detail, { cause, todo })
  }
}

/** To standard error: for people, or as JSON lines. */
function logger(name: string, json: boolean): (message: string) => void {
  // Whoever read it may be gone.
  process.stderr.on('error', () => undefined)
  return (message) => {
    const at = new Date().toISOString()
    const line = json ? JSON.stringify({ at, runner: name, message }) : `${at} ${name}: ${message}`
    process.stderr.write(`${line}\n`)
  }
}

/** Takes a pairing link. A device that was removed may come back to its account, with a new key. */
async function joinAccount(data: string, link: string): Promise<void> {
  const present = await loadIdentity(data)
  const { origin, account, device } = await takePairing(link)
  if (present && present.account.id !== account.id) {
    const todo = 'Choose another folder with --data DIR.'
    throw new BatonError('data-folder', `(${data} belongs to another account)`, { todo })
  }
  await saveRelay(data, { origin })
  await saveIdentity(data, { account, device })
}

type OnState = NonNullable<ConstructorParameters<typeof Runner>[0]['onState']>

/** Logs changes of the connection; tells when the relay will not have this device any more. */
function watchState(log: (message: string) => void, refused: (error: BatonError) => void): OnState {
  let told = ''
  return (state) => {
    if (state.at === 'refused') refused(new BatonError(state.code, state.message))
    const now = state.at === 'waiting' ? `connection lost (${state.reason}); retrying` : state.at
    if (now !== told && state.at !== 'connecting') log(now)
    told = now
  }
}

/** SIGTERM, SIGINT, SIGHUP, or the end of the process that started this one. */
function untilTold(): Promise<'told'> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve('told'))
    process.once('disconnect', () => resolve('told'))
  })
}

/** What nobody caught is our mistake, and no reason to drop every session unsaved. Whoever runs this starts it again. */
function untilFault(log: (message: string) => void): { met: Promise<'fault'>; end: () => void } {
  const { promise: met, resolve } = Promise.withResolvers<'fault'>()
  const onFault = (error: unknown): void => {
    log(`a fault of Baton, please report it: ${error instanceof Error ? error.stack : String(error)}`)
    resolve('fault')
  }
  process.on('uncaughtException', onFault)
  return { met, end: () => void process.off('uncaughtException', onFault) }
}

/** Draining may need what is broken. */
function endAtLast(within_ms: number, log: (message: string) => void): void {
  const timer = setTimeout(() => {
    log('sessions could not be let go; they go on from their journals when their leases have run out')
    process.exit(1)
  }, within_ms)
  timer.unref()
}

/** One signal may arrive as several: from the terminal, and passed on by the parent. */
const ONE_SIGNAL_MS = 500

/** Nothing is lost by it: what could not be saved goes on from its journal, once its lease has run out. */
function endWhenToldAgain(log: (message: string) => void): void {
  const first_at = performance.now()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (performance.now() - first_at < ONE_SIGNAL_MS) return
      log(`${signal} again: ends at once; what is not saved goes on elsewhere when its lease has run out`)
      process.exit(1)
    })
  }
}
