/** Pictures of `attach`, as plain functions of its state. */
import { expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import type { ToolItem } from '@baton/shared/view/items.ts'
import { EMPTY, type Transcript } from '@baton/shared/view/transcript.ts'
import type { NamedSession } from '../src/cli/account.ts'
import { chooseMode } from '../src/cli/attach/choices.ts'
import { act } from '../src/cli/attach/act.ts'
import { draw } from '../src/cli/attach/draw.ts'
import type { Host } from '../src/cli/attach/host.ts'
import { helpLines } from '../src/cli/attach/keys-help.ts'
import type { AttachState } from '../src/cli/attach/state.ts'
import { draftOf } from '../src/cli/term/editor.ts'
import { lineWidth } from '../src/cli/term/text.ts'
import { newAccount, newDevice } from '@baton/shared/keys.ts'

const device = newDevice(newAccount())

interface Bench {
  host: Host
  state: AttachState
  sent: [kind: string, body: unknown][]
  said: string[]
  press: (text: string) => void
  name: (name: string) => void
  screen: (width: number, height?: number) => string
}

function bench(transcript: Partial<Transcript>, status: NamedSession['status'] = 'running'): Bench {
  const [sent, said]: [[string, unknown][], string[]] = [[], []]
  const session: NamedSession = {
    ...{ sid: 's', meta: '', status, seq: 1, epoch: 1, place: {}, pending: 0, created_at: 1, changed_at: 1 },
    named: {
      title: 'Mend the roof of the old house by the sea',
      agent: 'coder',
      mode: 'ask',
      workspace: '/w',
    },
    holder: 'vm',
  }
  const live = {
    ...{ sid: 's', transcript: { ...EMPTY, ...transcript }, outgoing: [], waiting: [], wholes: new Map() },
    send: (kind: string, body: unknown) => sent.push([kind, body]),
  }
  const state = {
    ...{
      live,
      sessions: new Map([['s', session]]),
      runners: new Map(),
      names: new Map([['vm', 'vm-with-a-name']]),
    },
    ...{
      connection: { at: 'open' },
      lost_at: undefined,
      focus: 'composer',
      draft: draftOf(''),
      steers: false,
    },
    ...{ overlay: undefined, top: undefined, opened: new Set(), selected: undefined, card: undefined },
    said: undefined,
  } as unknown as AttachState
  const host = {
    ...{ state, view: { identity: { device } }, columns: 80, rows: 24 },
    ...{
      say: (words: string) => said.push(words),
      drafted: (draft: AttachState['draft']) => (state.draft = draft),
    },
    ...{ switchTo: () => undefined, end: () => undefined, forget: () => undefined, redraw: () => undefined },
  } as unknown as Host
  return {
    ...{ host, state, sent, said },
    press: (text) => act(host, { text, pasted: false }),
    name: (name) => act(host, { name }),
    screen: (width, height = 24) => {
      const { lines } = draw(state, width, height, 0)
      for (const line of lines) expect(lineWidth(line)).toBeLessThanOrEqual(width)
      return lines.map((line) => line.map(({ text }) => text).join('')).join('\n')
    },
  }
}

/** A transcript in which a call waits. */
function waits(name: string, input: ToolItem['input'], more: Partial<Transcript> = {}): Partial<Transcript> {
  const digest = callDigest(name, input)
  const item: ToolItem = {
    ...{ kind: 'tool', id: 'e1', at: 0, name, input, state: 'approval', attempt: 1 },
    approval: { effect: 4, digest },
  }
  const open = new Map([[4, { kind: 'approve' as const, attempt: 1, at: 0, item: 0 }]])
  return { items: [item], open, mode: 'ask', ...more }
}

it('F38: a plan is approved with the mode in which it is carried out; the mode goes first', () => {
  const { press, name, screen, sent, state } = bench(
    waits('propose_plan', { plan: '1. Look' }, { mode: 'plan' }),
    'waiting',
  )
  state.focus = 'approval'
  expect(screen(80)).not.toContain('a always')
  press('y')
  expect(screen(80)).toMatch(/What may the agent do then\?[^]*› Ask first[^]*Edit files/)
  expect(sent).toEqual([])
  name('down')
  name('enter')
  expect(sent.map(([kind]) => kind)).toEqual(['mode', 'decision'])
  expect(sent[0]?.[1]).toMatchObject({ mode: 'edit' })
})

it('always is offered only where a rule is safe', () => {
  const safe = bench(waits('bash', { command: 'npm test' }), 'waiting')
  const unsafe = bench(waits('bash', { command: 'wc -l a > b && cat b' }), 'waiting')
  for (const { state } of [safe, unsafe]) state.focus = 'approval'
  expect(safe.screen(80)).toContain('y approve · n deny · a always')
  expect(unsafe.screen(80)).toMatch(/y approve · n deny · Esc back/)
})

it('C16: on 40 columns the hints of a call are wrapped, not cut, and the state counts more than the machine', () => {
  const command = Array.from({ length: 60 }, (_, i) => `echo ${i}`).join('\n')
  const { state, screen } = bench(waits('bash', { command }), 'waiting')
  state.focus = 'approval'
  const text = screen(40)
  expect(text.replaceAll(/\s+/g, ' ')).toContain('n deny · see it all to approve · Esc back')
  expect(text.split('\n')[0]).toMatch(/waits for you$/)
})

it('the list of modes opens on the one that holds, shows all of it, and asks before full access', () => {
  const { host, screen, name, sent } = bench({ mode: 'edit' })
  chooseMode(host)
  const text = screen(40).replaceAll(/\s+/g, ' ')
  expect(text).toContain('› Edit files (now) Also changes files of the workspace. Asks before commands.')
  name('down')
  name('enter')
  expect(sent).toEqual([])
  expect(screen(80)).toMatch(/Are you sure\?[^]*› No, stay with: Edit files/)
  name('down')
  name('enter')
  expect(sent).toMatchObject([['mode', { mode: 'full' }]])
})

it('the last line says what Enter does and which mode holds; steering is for one prompt', () => {
  const { state, screen, press, name, sent } = bench({ mode: 'full' })
  press('more')
  for (const width of [40, 80]) expect(screen(width)).toMatch(/Enter: queue · Full access/)
  name('ctrl-s')
  expect(screen(80)).toMatch(/Enter: steer this turn/)
  name('enter')
  expect(sent).toEqual([['prompt', { text: 'more', steer: true }]])
  expect(state.steers).toBe(false)
})

it('C2: what the model thinks just now is two dim lines at most, until it says something', () => {
  const open = new Map([[1, { kind: 'llm' as const, attempt: 1, at: 0 }]])
  const thought = `${'It may be the cache, or the clock. '.repeat(9)}\u001b[2JI look.`
  const rows = bench({ open, thoughts: new Map([[1, thought]]) })
    .screen(60)
    .split('\n')
  const at = rows.findIndex((row) => row.includes('Thinking …'))
  expect(rows[at + 2]).toMatch(/I look\./)
  expect(rows[at + 3]).not.toMatch(/cache/)
  const said = bench({ open, live: new Map([[1, 'It is the clock.']]), thoughts: new Map([[1, '']]) })
  expect(said.screen(60)).not.toMatch(/Thinking/)
})

it('stop is not sent where nothing runs', () => {
  const resting = bench({}, 'idle')
  resting.name('ctrl-x')
  expect(resting).toMatchObject({ sent: [], said: ['Nothing runs.'] })
  const running = bench({})
  running.name('ctrl-x')
  expect(running.sent).toEqual([['stop', {}]])
})

it('the list of keys keeps its columns', () => {
  const lines = helpLines(80).map((line) => line.map(({ text }) => text).join(''))
  expect(lines).toContain('  Ctrl-A Ctrl-E        start and end of the line')
  for (const line of helpLines(40)) expect(lineWidth(line)).toBeLessThanOrEqual(40)
})
