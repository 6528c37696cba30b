/**
 * `baton guest …`: the pausable guest by hand, without a relay. Each step is a process of its own: it restores the guest from the
 * file, runs it a while, saves it and exits.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, GuestMessage, Pause } from '@baton/shared/guest.ts'
import { size } from '@baton/shared/view/units.ts'
import { sha256 } from '../vm/codec.ts'
import { GuestHarness } from '../vm/guest-harness.ts'
import type { Limits } from '../vm/messages.ts'
import { systemWords } from '../files/words.ts'
import { number, parseFor, refuseExisting } from './args.ts'
import { readGuestFile, writeGuestFile, type GuestFile } from './guest-file.ts'
import { resultOf } from './guest-reply.ts'
import { print } from './output.ts'
import { MODES } from './table.ts'

const msPerAnswer = 1000
/** Throws BatonError. */
export async function guestNew(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('guest new', args)
  await create(positionals[0] ?? '', values)
  return 0
}

export async function guestStep(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('guest step', args)
  return step(positionals[0] ?? '', values)
}

export async function guestReply(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('guest reply', args)
  const [path = '', effect, value = ''] = positionals
  reply(path, number('EFFECT', effect, 0, 1, Number.MAX_SAFE_INTEGER), value, values)
  return 0
}

export async function guestFork(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('guest fork', args)
  const [path = '', copy = ''] = positionals
  fork(path, copy, values)
  return 0
}

export async function guestInspect(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('guest inspect', args)
  inspect(positionals[0] ?? '', values)
  return 0
}

interface Flags {
  json?: boolean | undefined
  engine?: string | undefined
  seed?: string | undefined
}

async function create(
  agent: string,
  flags: Flags & { out?: string | undefined; mode?: string | undefined; now?: string | undefined },
): Promise<void> {
  if (flags.out === undefined) throw new BatonError('usage', 'It needs -o FILE, to write it to.')
  refuseExisting(flags.out)
  const mode = MODES.find((known) => known === (flags.mode ?? 'full')) ?? 'full'
  const now = number('--now', flags.now, Date.now(), 0, Number.MAX_SAFE_INTEGER)
  const bundle = await bundleOf(agent)
  const engine = readEngine(flags.engine)
  const harness = new GuestHarness({ engine, bundle })
  const header = await harness.open()
  await harness.close()
  const start: GuestMessage = {
    type: 'start',
    seed: seedOf(flags),
    now,
    mode,
    tools: [],
    about: {},
    settings: {},
  }
  const file: GuestFile = {
    engine: header.engine,
    state: 'new',
    now,
    transcript: [],
    open: [],
    inbox: [start],
    bundle,
  }
  writeGuestFile(flags.out, file)
  const { engine: id, baseline } = header
  print(
    flags.json,
    { file: flags.out, engine: id, baseline },
    `${flags.out} holds ${agent}, not started yet.`,
  )
}

async function step(path: string, flags: Flags & Slice): Promise<number> {
  const limits = limitsOf(flags)
  const file = readGuestFile(path)
  if (file.end !== undefined) return report(file, [], flags)
  const engine = readEngine(flags.engine)
  const found = sha256(engine)
  if (found !== file.engine)
    throw new BatonError('snapshot-engine', `(${path} needs engine ${file.engine}, this is ${found})`)
  const harness = new GuestHarness({ engine, bundle: file.bundle })
  const asked: EffectRequest[] = []
  try {
    let pause = await wake(harness, file)
    for (let next = nextMove(file, pause); next !== undefined; next = nextMove(file, pause)) {
      if (next !== 'run') file.transcript.push({ given: next })
      pause = next === 'run' ? await harness.run(limits) : await harness.deliver(next, limits)
      asked.push(...pause.asked)
      note(file, pause)
      if (pause.state === 'interrupted' && !isReseed(next)) break
    }
    if (file.end === undefined) file.snapshot = (await harness.snapshot({ full: true })).bytes
    writeGuestFile(path, file)
  } finally {
    await harness.close()
  }
  return report(file, asked, flags)
}

const isReseed = (next: GuestMessage | 'run'): boolean => next !== 'run' && next.type === 'reseed'

async function wake(harness: GuestHarness, file: GuestFile): Promise<Pause> {
  if (file.snapshot !== undefined) return harness.restore([file.snapshot])
  await harness.open()
  return { state: 'quiescent', asked: [] }
}

/** Takes what the guest can be given now out of the inbox. Undefined: it rests until somebody answers. */
function nextMove(file: GuestFile, pause: Pause): GuestMessage | 'run' | undefined {
  if (pause.state === 'finished' || pause.state === 'failed') return undefined
  const fits = (message: GuestMessage): boolean =>
    message.type === 'reseed' ||
    pause.state === 'quiescent' ||
    (pause.state === 'blocked' && message.type === 'outcome' && message.effect === pause.on)
  const at = file.inbox.findIndex(fits)
  if (at >= 0) return file.inbox.splice(at, 1)[0]
  return pause.state === 'interrupted' ? 'run' : undefined
}

function note(file: GuestFile, pause: Pause): void {
  for (const request of pause.asked) {
    file.transcript.push({ asked: request })
    if (request.kind !== 'emit') file.open.push(request)
  }
  file.state = pause.state
  delete file.on
  if (pause.state === 'blocked') file.on = pause.on
  if (pause.state !== 'finished' && pause.state !== 'failed') return
  file.end = { ...pause, asked: [] }
  file.open = []
  delete file.snapshot
}

function reply(
  path: string,
  effect: number,
  value: string,
  flags: Flags & { error?: boolean | undefined },
): void {
  const file = readGuestFile(path)
  const request = file.open.find(({ id }) => id === effect)
  if (request === undefined) {
    const open = file.open.map(({ id, kind }) => `${id} (${kind})`).join(', ') || 'nothing'
    const todo = `Open: ${open}. See: baton guest inspect FILE`
    throw new BatonError('nothing-waits', `(effect ${effect})`, { todo })
  }
  file.open = file.open.filter((other) => other !== request)
  file.now += msPerAnswer
  const outcome = flags.error
    ? { error: { code: 'model-error', message: value } }
    : { result: resultOf(request, value) }
  file.inbox.push({ type: 'outcome', effect, now: file.now, ...outcome })
  writeGuestFile(path, file)
  print(
    flags.json,
    { effect, kind: request.kind },
    `Effect ${effect} is answered; the next step gives it to the guest.`,
  )
}

function fork(path: string, copy: string, flags: Flags): void {
  const file = readGuestFile(path)
  refuseExisting(copy)
  const [first] = file.inbox
  // A copy of a copy must not draw what its origin draws.
  if (first?.type === 'start' || first?.type === 'reseed') first.seed = seedOf(flags)
  else file.inbox.unshift({ type: 'reseed', seed: seedOf(flags) })
  writeGuestFile(copy, file)
  print(
    flags.json,
    { file: copy, state: file.state },
    `${copy} goes on from where ${path} is, with other random numbers.`,
  )
}

function inspect(path: string, flags: Flags): void {
  const file = readGuestFile(path)
  const { snapshot, bundle, ...head } = file
  const sizes = { snapshot_bytes: snapshot?.length ?? 0, bundle_bytes: bundle.length, bundle: sha256(bundle) }
  if (flags.json) return print(true, { ...head, ...sizes }, '')
  const lines = file.transcript.map((line) =>
    'asked' in line ? `  → ${shown(line.asked)}` : `  ← ${shown(line.given)}`,
  )
  const facts = [
    `state      ${describe(file)}`,
    `engine     ${file.engine}`,
    `snapshot   ${size(sizes.snapshot_bytes)}, bundle ${size(sizes.bundle_bytes)}`,
    `open       ${file.open.map(({ id, kind }) => `${id} (${kind})`).join(', ') || 'nothing'}`,
    'transcript',
  ]
  print(false, null, [...facts, ...lines].join('\n'))
}

function report(file: GuestFile, asked: EffectRequest[], flags: Flags): number {
  const { state, on, open, end } = file
  const data = {
    state,
    ...(on !== undefined && { on }),
    asked,
    open: open.map(({ id }) => id),
    ...(end && { end }),
  }
  print(flags.json, data, [...asked.map((request) => `→ ${shown(request)}`), describe(file)].join('\n'))
  return end?.state === 'failed' ? 1 : 0
}

function describe({ state, on, end, open }: GuestFile): string {
  if (end?.state === 'failed') return `failed: ${end.error.message} (${end.error.code})`
  if (end?.state === 'finished') return `finished: ${JSON.stringify(end.result)}`
  if (state === 'blocked') return `blocked on effect ${on}`
  if (state === 'quiescent') return `quiescent, waits for ${open.map(({ id }) => id).join(', ') || 'nothing'}`
  return state === 'new' ? 'not started' : state
}

const shownChars = 160
function shown(value: EffectRequest | GuestMessage): string {
  const text = JSON.stringify(value)
  return text.length <= shownChars ? text : `${text.slice(0, shownChars)}…`
}

interface Slice {
  'slice-ms'?: string | undefined
  fuel?: string | undefined
}

function limitsOf(flags: Slice): Limits {
  if (flags['slice-ms'] !== undefined && flags.fuel !== undefined)
    throw new BatonError('usage', 'Give --slice-ms or --fuel, not both.')
  return {
    ...(flags['slice-ms'] !== undefined && { ms: number('--slice-ms', flags['slice-ms'], 0, 0, 86_400_000) }),
    ...(flags.fuel !== undefined && { fuel: number('--fuel', flags.fuel, 0, 1, Number.MAX_SAFE_INTEGER) }),
  }
}

function seedOf({ seed }: Flags): string {
  if (seed === undefined) return randomBytes(32).toString('hex')
  if (!/^[0-9a-f]{64}$/.test(seed)) throw new BatonError('usage', '--seed takes 64 hex digits.')
  return seed
}

const dist = (file: string): string => fileURLToPath(new URL(`../../../guest/dist/${file}`, import.meta.url))

/** A built-in agent by its name, or a file, bundled. */
async function bundleOf(agent: string): Promise<Uint8Array> {
  const builtIn = dist(`agents/${agent}.js`)
  if (/^[a-z-]+$/.test(agent) && existsSync(builtIn)) return new Uint8Array(readFileSync(builtIn))
  const { bundleAgent, BundleError } = await import('@baton/guest/bundle.ts')
  try {
    return await bundleAgent(agent)
  } catch (cause) {
    if (cause instanceof BundleError) throw new BatonError('agent-invalid', `(${cause.message})`, { cause })
    throw cause
  }
}

/** `given`: as the person did; else that of this clone. Throws BatonError `file-unusable`. */
function readEngine(given: string | undefined): Uint8Array {
  const path = given ?? dist('engine.wasm')
  try {
    return new Uint8Array(readFileSync(path))
  } catch (cause) {
    const todo = given === undefined ? { todo: 'Build the engine: npm run build' } : {}
    throw new BatonError('file-unusable', `${path} can't be read: ${systemWords(cause)}.`, { cause, ...todo })
  }
}
