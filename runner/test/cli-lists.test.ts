/** What lists of runners and sessions say, and in which order. Pure. */
import { expect, it } from 'vitest'
import type { NamedRunner, NamedSession } from '../src/cli/account.ts'
import { inOrder } from '../src/cli/account.ts'
import { doubtsOf } from '../src/cli/model-doubt.ts'
import { table } from '../src/cli/output.ts'
import { rowsOf, textOf } from '../src/cli/runners.ts'
import { insteadOf, modelDoubt } from '../src/model/names.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000

function runner(name: string, more: Partial<NamedRunner> & { pools?: string[] } = {}): NamedRunner {
  const { pools = [], ...rest } = more
  return {
    ...{
      device: `d-${name}`,
      online: true,
      since: NOW - 5 * MINUTE,
      capacity: 4,
      held: 0,
      tags: [],
      body: '',
    },
    about: {
      ...{ name, pools, platform: 'linux x64', model: 'anthropic', models: ['claude-next-1'] },
      workspaces: [{ path: '/home/ada/shop', name: 'shop' }],
    },
    ...rest,
  }
}

function session(
  sid: string,
  status: NamedSession['status'],
  more: Partial<NamedSession> = {},
): NamedSession {
  return {
    ...{ sid, meta: '', status, seq: 1, epoch: 1, place: {}, pending: 0, created_at: 1, changed_at: 1 },
    named: { title: `About ${sid}`, agent: 'coder', mode: 'ask', workspace: '/w' },
    ...more,
  }
}

const RUNNERS = [
  runner('gone', { online: false, since: NOW - 2 * 24 * 60 * MINUTE, held: 1 }),
  runner('cloud-1', { pools: ['cloud', 'gpu'], capacity: 8, held: 1 }),
  runner('leaving', { capacity: 0, held: 2, since: NOW - 60 * MINUTE }),
  runner('laptop', { since: NOW - 90 * MINUTE }),
]
const HELD = [
  session('aaaaaaaaaa', 'running', { holder: 'd-cloud-1' }),
  session('bbbbbbbbbb', 'waiting', { holder: 'd-cloud-1', changed_at: 0 }),
  session('cccccccccc', 'idle'),
]

it('V9: this machine’s runner comes first and is marked, then those that are online; under each stands what it holds', () => {
  const rows = rowsOf({ runners: RUNNERS, sessions: HELD }, 'd-laptop')
  expect(rows.map(({ name, here, state }) => [name, here, state])).toEqual([
    ['laptop', true, 'online'],
    ['cloud-1', false, 'online'],
    ['leaving', false, 'leaving'],
    ['gone', false, 'away'],
  ])
  expect(textOf(rows, NOW, 200).split('\n')).toEqual([
    'runner         state    since  sessions  pools       model      folders',
    'laptop (here)  online   1 h    0 of 4                anthropic  /home/ada/shop',
    'cloud-1        online   5 min  1 of 8    cloud, gpu  anthropic  /home/ada/shop',
    '  bbbbbbbb  waiting  About bbbbbbbbbb',
    '  aaaaaaaa  running  About aaaaaaaaaa',
    'leaving        leaving  1 h    2                     anthropic  /home/ada/shop',
    // How much room it had is of no use, and how much it held is not so any more.
    'gone           away     2 d                          anthropic  /home/ada/shop',
  ])
})

it('V9: without any runner, and with none that is online, it says what to do', () => {
  expect(textOf([], NOW)).toBe(
    'There is no runner yet. Start one: baton up — or: baton runner --workspace DIR',
  )
  const away = rowsOf({ runners: RUNNERS.slice(0, 1), sessions: [] }, 'd-laptop')
  expect(textOf(away, NOW)).toMatch(/\ngone .* away .*\n\nNone is online\. Start one: baton up/)
})

it('V6: names of runners reach a terminal without controls, and no line is wider than it', () => {
  const evil = runner('\u001b[2Jname\nof\u202eit', { device: 'd-evil' })
  const rows = rowsOf(
    { runners: [evil], sessions: [session('dddddddddd', 'idle', { holder: 'd-evil' })] },
    'x',
  )
  const text = textOf(rows, NOW, 80)
  for (const sign of ['\u001b', '\u202e']) expect(text).not.toContain(sign)
  expect(text).toContain('name ofit')
  for (const line of textOf(rows, NOW, 24).split('\n').slice(2)) expect(line.length).toBeLessThanOrEqual(24)
})

it('columns are as wide as what stands in them, wide letters too; only the last is cut', () => {
  const lines = table(
    ['a', 'about'],
    [
      ['日本', 'x'.repeat(40)],
      ['b', 'short'],
    ],
    24,
  ).split('\n')
  expect(lines).toEqual(['a     about', `日本  ${'x'.repeat(17)}…`, 'b     short'])
})

it('what waits for a person stands above what failed, as on the phone', () => {
  const all = [
    session('idle', 'idle', { changed_at: 9 }),
    session('failed', 'failed', { changed_at: 8 }),
    session('running', 'running', { changed_at: 7 }),
    session('waiting', 'waiting', { changed_at: 1 }),
  ]
  expect(inOrder(all).map(({ sid }) => sid)).toEqual(['waiting', 'failed', 'running', 'idle'])
})

it('V10: a model that nobody knows is doubted, with the one that was most likely meant; what a runner offers is known', () => {
  for (const known of ['claude-opus-5-5', 'claude-sonnet-4-5-20250929', 'claude-fable-5'])
    expect(modelDoubt(known), known).toBeUndefined()
  for (const [typed, meant] of [
    ['claude-opus-55', 'claude-opus-5-5'],
    ['Claude-Sonnet-5.5', 'claude-sonnet-5-5'],
    ['opus', 'claude-opus-5-5'],
    ['haiku-latest', 'claude-haiku-5-5'],
    ['claude-3-5-sonnet-20241022', 'claude-sonnet-5-5'],
  ] as const)
    expect(modelDoubt(typed), typed).toContain(`Did you mean ${meant}?`)
  expect(modelDoubt('gpt')).toMatch(
    /"gpt" is not known here\. There are: claude-sonnet-5-5, .*asked for all the same/,
  )
  expect(modelDoubt('gpt', ['house-a', 'house-b'])).toContain('There are: house-a, house-b.')
  expect(doubtsOf('claude-next-1', [runner('one')])).toEqual({})
  expect(doubtsOf(undefined, [])).toEqual({})
  expect(doubtsOf('claude-next-2', [runner('one')]).warnings?.[0]).toContain('Did you mean claude-next-1?')
})

it('V10: of many models of a service the first are named', () => {
  const many = Array.from({ length: 12 }, (_, i) => `model-with-number-${'x'.repeat(i)}`)
  expect(insteadOf('zzz', many)).toBe(`There are: ${many.slice(0, 8).join(', ')}, ….`)
  expect(insteadOf('zzz', [])).toBe('')
})
