/** Guests for tests: small agents written where they are used, on the built engine. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleAgent } from '@baton/guest/bundle.ts'
import type { EffectRequest, GuestMessage, Json, Pause, StartMessage } from '@baton/shared/guest.ts'
import { computeBaseline } from '../src/vm/baseline.ts'
import { sha256 } from '../src/vm/codec.ts'
import { Guest, type GuestOptions } from '../src/vm/guest.ts'

const dist = (file: string): string => fileURLToPath(new URL(`../../guest/dist/${file}`, import.meta.url))

export const engine = new Uint8Array(readFileSync(dist('engine.wasm')))
const module = new WebAssembly.Module(engine)

export const start: StartMessage = {
  type: 'start',
  seed: '0123456789abcdef'.repeat(4),
  now: 1_700_000_000_000,
  mode: 'full',
  tools: [],
  about: {},
  settings: {},
}

/** Bundles an agent's source. `main` sees everything that the SDK exports. */
export async function bundle(source: string): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-agent-'))
  try {
    const file = join(folder, 'agent.ts')
    writeFileSync(file, source)
    return await bundleAgent(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What a guest of this agent is made of. */
export async function program(source: string): Promise<GuestOptions> {
  const code = await bundle(source)
  return { module, baseline: computeBaseline(module, code), engine: sha256(engine), bundle: sha256(code) }
}

export const outcome = (effect: number, result: Json): GuestMessage => ({
  type: 'outcome',
  effect,
  now: start.now + 1000 * effect,
  result,
})

/** The transcript of a guest whose every effect is answered with its own number, however often it is cut. */
export function play(
  options: GuestOptions,
  cut: (guest: Guest) => { guest: Guest; fuel?: number },
): { transcript: EffectRequest[]; end: Pause; hash: string; cuts: number } {
  const transcript: EffectRequest[] = []
  const open: number[] = []
  let cuts = 0
  const first = cut(new Guest(options))
  let { guest } = first
  const limit = (fuel: number | undefined): { fuel?: number } => (fuel === undefined ? {} : { fuel })
  let pause = guest.deliver(start, limit(first.fuel))
  for (;;) {
    transcript.push(...pause.asked)
    open.push(...pause.asked.filter(({ kind }) => kind !== 'emit').map(({ id }) => id))
    if (pause.state === 'finished' || pause.state === 'failed')
      return { transcript, end: { ...pause, asked: [] }, hash: guest.memoryHash(), cuts }
    const next = cut(guest)
    guest = next.guest
    if (pause.state === 'interrupted') {
      cuts++
      pause = guest.run(limit(next.fuel))
    } else {
      const effect = pause.state === 'blocked' ? pause.on : open[0]
      if (effect === undefined) throw new Error('the guest waits for nothing')
      open.splice(open.indexOf(effect), 1)
      pause = guest.deliver(outcome(effect, { text: `answer ${effect}` }), limit(next.fuel))
    }
  }
}

/** Saves and restores into a fresh instance. */
export function moved(options: GuestOptions, guest: Guest): Guest {
  const fresh = new Guest(options)
  fresh.restore([guest.snapshot({ full: true }).bytes])
  return fresh
}

/** Seeded random numbers; print the seed when a test fails. */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}
