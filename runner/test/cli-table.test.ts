/** The table of commands, and what is made from it: parsing, help, completion. Pure; no process is started. */
import { expect, it } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import { candidates, type Listed, type NamedSession } from '../src/cli/account.ts'
import { noCommand, parseFor, servedFolder } from '../src/cli/args.ts'
import { completions, unquoted, type Lookup } from '../src/cli/completion.ts'
import { helpOf, overview } from '../src/cli/help.ts'
import { nearestFirst } from '../src/cli/nearest.ts'
import { distance, nearest } from '../src/similar.ts'
import { commandIn, COMMANDS } from '../src/cli/table.ts'

function session(sid: string, title: string, status: NamedSession['status'] = 'idle'): NamedSession {
  return {
    ...{ sid, meta: '', status, seq: 1, epoch: 1, place: {}, pending: 0, created_at: 1, changed_at: 1 },
    named: { title, agent: 'coder', mode: 'ask', workspace: '/w' },
  }
}

const SESSIONS = [
  session('aaaaaaaa1111', 'Fix the build'),
  session('aaaaaaaa2222', 'Fix the tests', 'waiting'),
  session('bbbbbbbb3333', 'Write docs'),
]
const runner = (name: string, pools: string[]) => ({
  ...{ device: name, online: true, since: 1, capacity: 1, held: 0, tags: [], body: '' },
  about: { name, pools, platform: 'linux x64', model: 'anthropic' as const, models: ['m-1'], workspaces: [] },
})
const LISTED: Listed = {
  sessions: SESSIONS,
  runners: [runner('laptop', []), runner('cloud-1', ['cloud'])],
  devices: [],
}
const lookup: Lookup = { list: async () => LISTED, documents: async () => ['todo', 'plan'] }
const away: Lookup = {
  list: () => Promise.reject(new BatonError('offline')),
  documents: () => Promise.reject(new BatonError('offline')),
}

async function values(...words: string[]): Promise<string[] | string> {
  const found = await completions(words, lookup)
  return 'shell' in found ? found.shell : found.candidates.map(({ value }) => value)
}

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof BatonError) return `${error.code}: ${error.detail}`
    throw error
  }
  return 'no error'
}

it('V1: every command has help that names all of its flags, and the overview names every command', () => {
  for (const [name, command] of Object.entries(COMMANDS)) {
    expect(overview()).toContain(`  ${name} `)
    const help = helpOf(name, command)
    for (const [flag, { hidden }] of Object.entries(command.flags)) {
      if (hidden !== true) expect(help).toContain(`--${flag}`)
      else expect(help).not.toContain(`--${flag}`)
    }
  }
})

it('a folder to serve has to be there', async () => {
  expect(await servedFolder('.')).toBe(process.cwd())
  await expect(servedFolder('/nope')).rejects.toThrow(/can not be a workspace.*\/nope is not there/)
  await expect(servedFolder(import.meta.filename)).rejects.toThrow(/is no folder/)
})

it('every command can be loaded', async () => {
  for (const { load } of Object.values(COMMANDS)) expect(await load()).toBeTypeOf('function')
})

it('V1: a command, flag or value that is not there is refused with what was most likely meant', () => {
  expect(noCommand(['compct']).detail).toContain('Did you mean baton compact?')
  expect(noCommand(['hnadoff']).detail).toContain('Did you mean baton handoff?')
  expect(noCommand(['xyzzy']).detail).not.toContain('mean')
  expect(noCommand(['guest', 'stp']).detail).toContain('Did you mean step?')
  expect(refusal(() => parseFor('ls', ['--jsn']))).toMatch(/^usage: There is no flag --jsn.*--json\?/)
  expect(refusal(() => parseFor('new', ['x', '--model']))).toBe('usage: --model takes a value.')
  expect(refusal(() => parseFor('ls', ['--json=1']))).toBe('usage: --json takes no value.')
  expect(parseFor('docs', []).positionals).toEqual([])
  expect(refusal(() => parseFor('mode', ['a', 'aks']))).toMatch(/^usage: MODE is one of.*Did you mean ask\?/)
  expect(refusal(() => parseFor('new', ['--mode', 'plam', 'x']))).toMatch(/--mode is one of.*plan\?/)
  expect(refusal(() => parseFor('prompt', ['only-a-session']))).toBe(
    'usage: TEXT is missing: usage: baton prompt SESSION TEXT… [flags].',
  )
  expect(refusal(() => parseFor('stop', ['a', 'b']))).toMatch(
    /"b" is too much: usage: baton stop \[SESSION\]/,
  )
})

it('measures edits, and guesses only what is near', () => {
  expect([
    distance('ls', 'ls'),
    distance('sl', 'ls'),
    distance('attach', 'atach'),
    distance('', 'abc'),
  ]).toEqual([0, 1, 1, 3])
  expect(nearest('comp', ['compact', 'completion', 'stop'])).toBeUndefined()
  expect(nearest('compl', ['compact', 'completion', 'stop'])).toBe('completion')
})

it('finds the command, of one word or two', () => {
  expect(commandIn(['guest', 'step', 'x'])).toMatchObject({ name: 'guest step', args: ['x'] })
  expect(commandIn(['ls', '--json'])).toMatchObject({ name: 'ls', args: ['--json'] })
  expect(commandIn(['guest'])).toBeUndefined()
  expect(commandIn(['toString'])).toBeUndefined()
})

it('a session is never guessed: an id, a beginning, words of a title, and every candidate when several fit', () => {
  const ids = (text: string | undefined) => candidates(SESSIONS, text).map(({ sid }) => sid)
  expect(ids('aaaaaaaa1111')).toEqual(['aaaaaaaa1111'])
  expect(ids('aaaa')).toEqual(['aaaaaaaa1111', 'aaaaaaaa2222'])
  expect(ids('b')).toEqual(['bbbbbbbb3333'])
  expect(ids('DOCS')).toEqual(['bbbbbbbb3333'])
  expect(ids('fix the')).toHaveLength(2)
  expect(ids('')).toHaveLength(3)
  expect(ids('nothing')).toEqual([])
  expect(ids(undefined)).toHaveLength(3)
})

it('completes commands, verbs, flags and their values', async () => {
  expect(await values('han')).toEqual(['handoff'])
  expect(await values('guest', 's')).toEqual(['step'])
  expect(await values('help', 'comp')).toEqual(['compact', 'completion'])
  expect(await values('new', '--mo')).toEqual(['--mode', '--model'])
  expect(await values('new', '--mode', 'p')).toEqual(['plan'])
  expect(await values('new', '--mode=e')).toEqual(['--mode=edit'])
  expect(await values('new', '--mode', 'plan', '--mo')).toEqual(['--model'])
  expect(await values('new', '--workspace', '')).toBe('folder')
  expect(await values('relay', '--hold')).toEqual([])
  expect(await values('nothing', '')).toEqual([])
})

it('completes sessions, runners, pools, models and documents from the account', async () => {
  expect(await values('log', '')).toEqual(['aaaaaaaa2', 'aaaaaaaa1', 'bbbbbbbb'])
  expect(await values('stop', 'b')).toEqual(['bbbbbbbb'])
  expect(await values('handoff', 'b', '--to', '')).toEqual(['laptop', 'cloud-1', 'cloud'])
  expect(await values('runner', '--pool', '')).toEqual(['cloud'])
  expect(await values('set', '--model', '')).toEqual(['m-1'])
  expect(await values('docs', 'b', 't')).toEqual(['todo'])
  expect(await values('mode', 'b', '')).toEqual(['plan', 'ask', 'edit', 'full'])
})

it('F8: a relay that does not answer hinders only what needs it', async () => {
  expect(await completions(['mode', 'x', 'f'], away)).toEqual({ candidates: [{ value: 'full' }] })
  await expect(completions(['log', ''], away)).rejects.toMatchObject({ code: 'offline' })
})

it('V8: of several runners the one of this machine is meant, then those outside pools, whatever is listed first', () => {
  const leaving = { ...runner('leaving', []), capacity: 0 }
  const gone = { ...runner('gone', []), online: false }
  const cloud = runner('cloud-1', ['cloud'])
  const order = (here: string, ...listed: (typeof cloud)[]): string[] =>
    nearestFirst(listed, here).map(({ device }) => device)
  const all = [leaving, cloud, runner('desk', []), gone, runner('laptop', [])]
  expect(order('laptop', ...all)).toEqual(['laptop', 'desk', 'cloud-1', 'leaving'])
  expect(order('cloud-1', ...all)).toEqual(['cloud-1', 'desk', 'laptop', 'leaving'])
  expect(order('gone', ...all)).toEqual(['desk', 'laptop', 'cloud-1', 'leaving'])
})

it('V1: takes the quotes off words that are completed, closed or still open', () => {
  const words = ['a\\ b', '"fix the"', "'it", '"a\\"b', 'x"y z"w', "''", '--a="b c', "it\\'s"]
  expect(words.map(unquoted)).toEqual(['a b', 'fix the', 'it', 'a"b', 'xy zw', '', '--a=b c', "it's"])
})
