/** The pausable guest: how fast it stops, how small it is saved, how fast it is back, and what its engine costs. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { GuestMessage, Json, Pause, StartMessage, ToolSpec } from '@baton/shared/guest.ts'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { computeBaseline } from '@baton/runner/vm/baseline.ts'
import { sha256 } from '@baton/runner/vm/codec.ts'
import { Guest, type GuestOptions } from '@baton/runner/vm/guest.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { quantile, result, type BenchAbout, type BenchResult } from './result.ts'

export const about: BenchAbout = {
  measures:
    'the guest VM alone: stop flag to unwound stack (each sample in one of several native and JavaScript loops), snapshots and restores of a coding session of 100 messages, and the instrumented engine against the untouched one, side by side in one process.',
  leavesOut: 'relay, encryption and the network; those are in the group handoff.',
}

const dist = (file: string): Uint8Array =>
  new Uint8Array(readFileSync(new URL(`../../../guest/dist/${file}`, import.meta.url)))

const start: StartMessage = {
  ...{ type: 'start', seed: '0123456789abcdef'.repeat(4), now: 1_700_000_000_000, mode: 'full' },
  tools: ['bash', 'read', 'write', 'edit', 'glob', 'grep'].map((name): ToolSpec => ({
    ...{ name, replay: 'never', access: 'run' },
    description: `Does ${name} in the workspace and returns what came of it, cut when it is long.`,
    schema: { type: 'object', properties: { path: { type: 'string' }, command: { type: 'string' } } },
  })),
  about: { workspace: 'shop', branch: 'main', platform: 'linux' },
  settings: {},
}

export async function* guestBench(): AsyncGenerator<BenchResult> {
  const engine = dist('engine.wasm')
  yield* stopping(engine)
  yield* saving(engine)
  yield* slowness(engine)
}

// --- stop to unwound -------------------------------------------------------------------------------------------------

const busy = [
  `let x = 0; for (;;) x = (x * 7 + 1) % 1000003`,
  `return /^(a+)+$/.test('a'.repeat(60) + 'b')`,
  `const a = Array.from({ length: 200000 }, (_, i) => (i * 7919) % 200000); for (;;) a.reverse().sort((p, q) => p - q)`,
  `Array.prototype.indexOf.call({ length: 2 ** 40 }, 1)`,
  `const s = '[' + '[1,2,{"a":"b"}],'.repeat(100000) + '0]'; for (;;) JSON.parse(s)`,
  `let b = 3n ** 200000n; for (;;) b = (b * b) >> 300000n`,
]

async function* stopping(engine: Uint8Array): AsyncGenerator<BenchResult> {
  const latencies: number[] = []
  for (const body of busy) {
    const harness = new GuestHarness({ engine, bundle: await bundleOf(`export default () => { ${body} }`) })
    await harness.open()
    let running: Promise<Pause> = harness.deliver(start)
    for (let i = 0; i < 60; i++) {
      await new Promise((resolve) => setTimeout(resolve, i === 0 ? 100 : 3 + (i % 7)))
      const before = performance.now()
      harness.interrupt()
      await running
      if (i > 0) latencies.push(performance.now() - before)
      running = harness.run()
    }
    harness.interrupt()
    await running
    await harness.close()
  }
  const samples = latencies.length
  yield result('stop to unwound p50', quantile(latencies, 0.5), { unit: 'ms', samples })
  yield result('stop to unwound p99', quantile(latencies, 0.99), { unit: 'ms', samples, budget: 5 })
}

async function bundleOf(source: string): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-bench-'))
  try {
    writeFileSync(join(folder, 'agent.ts'), source)
    return await bundleAgent(join(folder, 'agent.ts'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

// --- snapshots and restores ------------------------------------------------------------------------------------------

async function* saving(engine: Uint8Array): AsyncGenerator<BenchResult> {
  const bundle = dist('agents/coder.js')
  const module = new WebAssembly.Module(engine as Uint8Array<ArrayBuffer>)
  const options: GuestOptions = {
    ...{ module, baseline: computeBaseline(module, bundle) },
    ...{ engine: sha256(engine), bundle: sha256(bundle) },
  }
  const times: number[] = []
  const deltas: number[] = []
  const guest = codingSession(options, 100, (at) => {
    const before = performance.now()
    const { bytes, header } = at.snapshot()
    times.push(performance.now() - before)
    if (header.parent !== undefined) deltas.push(bytes.length / 1000)
  })
  const fullTimes = Array.from({ length: 50 }, () => {
    const before = performance.now()
    guest.snapshot({ full: true })
    return performance.now() - before
  })
  const full = guest.snapshot({ full: true })
  const warm = quantile(times.slice(20), 0.5)
  const against = { unit: 'KB', samples: deltas.length, budget: 16 }
  yield result('snapshot against parent, time p50', warm, {
    unit: 'ms',
    samples: times.length - 20,
    budget: 2,
  })
  yield result('snapshot full, time p50', quantile(fullTimes, 0.5), { unit: 'ms', samples: 50, budget: 2 })
  yield result('snapshot full, size', full.bytes.length / 1000, { unit: 'KB', samples: 1, budget: 64 })
  yield result('snapshot against parent, size p50', quantile(deltas, 0.5), against)
  yield result('snapshot against parent, size max', Math.max(...deltas), against)
  yield* restoring(engine, bundle, full.bytes)
}

/** Plays the default agent with a scripted model; calls back at every wait for the model or a person. */
function codingSession(options: GuestOptions, messages: number, atWait: (guest: Guest) => void): Guest {
  const guest = new Guest(options)
  let pause = guest.deliver(start)
  let sent = 0
  for (let seen = 0; ;) {
    // A turn under way listens for steering prompts all the time; here nobody steers.
    const request = pause.asked.find(
      ({ kind, input }) => kind !== 'emit' && !(kind === 'prompt' && input.steer),
    )
    if (request === undefined) throw new Error(`the agent asks for nothing: ${JSON.stringify(pause)}`)
    if (request.kind === 'llm') {
      seen += request.input.add.length + 1
      if (seen > messages) return guest
    }
    if (request.kind === 'llm' || request.kind === 'prompt') atWait(guest)
    pause = guest.deliver(answer(request.id, request.kind, ++sent))
  }
}

function answer(effect: number, kind: string, n: number): GuestMessage {
  const line = (i: number): string =>
    `${i}: const total${n} = items.reduce((sum, item) => sum + item.price * ${i}, 0)\n`
  const words = `Step ${n}: I look at the file that computes the total and change the rounding in line ${n * 3}.`
  const usage = { input_tokens: 1000 + n, output_tokens: 80, cache_read_tokens: 900, cache_write_tokens: 100 }
  const call = { type: 'tool_use', id: `toolu_${n}`, name: 'read', input: { path: `src/part-${n}.ts` } }
  const results: Record<string, Json> = {
    prompt: { text: `Please fix issue ${n} in the till.`, command: `c${n}` },
    llm: {
      content: n % 9 === 0 ? [{ type: 'text', text: words }] : [{ type: 'text', text: words }, call],
      ...{ stop_reason: n % 9 === 0 ? 'end_turn' : 'tool_use', model: 'scripted', usage },
    },
    tool: { text: Array.from({ length: 12 }, (_, i) => line(i)).join(''), is_error: false },
  }
  return { type: 'outcome', effect, now: start.now + n * 1000, result: results[kind] ?? null }
}

async function* restoring(
  engine: Uint8Array,
  bundle: Uint8Array,
  snapshot: Uint8Array,
): AsyncGenerator<BenchResult> {
  const warm: number[] = []
  for (let i = 0; i < 60; i++) {
    const harness = new GuestHarness({ engine, bundle })
    const before = performance.now()
    await harness.restore([snapshot])
    if (i >= 10) warm.push(performance.now() - before)
    await harness.close()
  }
  yield result('restore in a warm process p50', quantile(warm, 0.5), {
    unit: 'ms',
    samples: warm.length,
    budget: 3,
  })

  const folder = mkdtempSync(join(tmpdir(), 'baton-bench-'))
  writeFileSync(join(folder, 'snapshot'), snapshot)
  const script = `
    import { readFileSync } from 'node:fs'
    import { enableCompileCache } from 'node:module'
    enableCompileCache()
    const { GuestHarness } = await import(${JSON.stringify(fileURLToPath(import.meta.resolve('@baton/runner/vm/guest-harness.ts')))})
    const dist = ${JSON.stringify(fileURLToPath(new URL('../../../guest/dist/', import.meta.url)))}
    const harness = new GuestHarness({ engine: readFileSync(dist + 'engine.wasm'), bundle: readFileSync(dist + 'agents/coder.js') })
    await harness.restore([readFileSync('snapshot')])
    console.log(performance.now())`
  writeFileSync(join(folder, 'restore.mjs'), script)
  const fresh = Array.from({ length: 12 }, () =>
    Number(execFileSync(process.execPath, ['restore.mjs'], { cwd: folder, encoding: 'utf8' })),
  )
  rmSync(folder, { recursive: true })
  const versus = 'the start of the process'
  yield result('restore in a fresh process p50', quantile(fresh, 0.5), {
    unit: 'ms',
    samples: 12,
    budget: 150,
    versus,
  })
}

// --- instrumented against untouched ----------------------------------------------------------------------------------

const programs: [name: string, budget: number, source: string][] = [
  [
    'JS loops',
    2,
    `(() => { let s = 0; for (let i = 0; i < 1500000; i++) s = (s + i * 7) % 1000003; return s })()`,
  ],
  ['JS calls', 2, `(() => { const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(23) })()`],
  [
    'JS objects',
    2,
    `(() => { const a = []; for (let i = 0; i < 50000; i++) a.push({ i, s: 'k' + i }); let t = 0; for (const o of a) t += o.s.length; return t })()`,
  ],
  [
    'JSON',
    1.3,
    `(() => { const o = Array.from({ length: 2000 }, (_, i) => ({ id: i, name: 'item ' + i, tags: ['a', 'b'], n: { x: i / 3, y: null } })); let n = 0; for (let k = 0; k < 4; k++) n += JSON.parse(JSON.stringify(o)).length; return n })()`,
  ],
  [
    'regular expressions',
    1.3,
    `(() => { const t = 'the quick brown fox jumps over 12345 lazy dogs '.repeat(400); let n = 0; for (let k = 0; k < 6; k++) for (const m of t.matchAll(/(\\w+)\\s(\\d+)|o[a-z]+/g)) n += m[0].length; return n })()`,
  ],
]

/** Rounds of one side after the other; the first ones warm the compiler up. */
const rounds = 24
const warmUp = 8

async function* slowness(engine: Uint8Array): AsyncGenerator<BenchResult> {
  const untouched = readFileSync(
    createRequire(import.meta.resolve('@baton/guest/bundle.ts')).resolve('quickjs-wasi/quickjs.wasm'),
  )
  const sides = [evaluator(new Uint8Array(untouched)), evaluator(engine)] as const
  for (const [name, budget, source] of programs) {
    const ratios: number[] = []
    for (let round = 0; round < rounds; round++) {
      const [plain, instrumented] =
        round % 2 === 0
          ? [sides[0](source), sides[1](source)]
          : [sides[1](source), sides[0](source)].toReversed()
      if (plain!.value !== instrumented!.value) throw new Error(`the engines disagree about ${name}`)
      if (round >= warmUp) ratios.push(instrumented!.ms / plain!.ms)
    }
    const versus = 'the untouched engine'
    yield result(`instrumented, ${name}`, quantile(ratios, 0.5), {
      unit: 'x',
      samples: ratios.length,
      budget,
      versus,
    })
  }
}

interface Raw {
  memory: WebAssembly.Memory
  baton_fuel?: WebAssembly.Global
  _initialize(): void
  qjs_init(): number
  wasm_malloc(bytes: number): number
  wasm_free(at: number): void
  qjs_eval(code: number, length: number, file: number, flags: number): number
  qjs_get_float64(value: number): number
  qjs_free_value(value: number): void
}

/** Evaluates scripts on a bare module, either of the two. */
function evaluator(bytes: Uint8Array): (source: string) => { ms: number; value: number } {
  const zero = (): number => 0
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>), {
    baton: { interrupt: () => void (raw.baton_fuel!.value = 2000) },
    env: {
      ...{ host_call: zero, host_interrupt: zero, host_promise_rejection: zero },
      ...{ host_module_normalize: zero, host_module_load: zero, host_get_timezone_offset: zero },
    },
    wasi_snapshot_preview1: {
      ...{ clock_time_get: zero, random_get: zero, fd_write: zero },
      ...{ fd_close: zero, fd_seek: zero, fd_fdstat_get: zero },
    },
  })
  const raw = instance.exports as unknown as Raw
  raw._initialize()
  raw.qjs_init()
  return (source) => {
    const encoded = Buffer.from(`${source}\0x\0`)
    const at = raw.wasm_malloc(encoded.length)
    new Uint8Array(raw.memory.buffer).set(encoded, at)
    const before = performance.now()
    const value = raw.qjs_eval(at, encoded.length - 3, at + encoded.length - 2, 0)
    const ms = performance.now() - before
    raw.wasm_free(at)
    const number = raw.qjs_get_float64(value)
    raw.qjs_free_value(value)
    return { ms, value: number }
  }
}
