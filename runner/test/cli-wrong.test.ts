/**
 * Everything that a person can get wrong on a command line that needs no account: each is told in words of what happened and what to
 * do, with an exit code. In this process; how a process prints it is shown by cli-process.test.ts.
 */
import { spawn } from 'node:child_process'
import { once, type EventEmitter } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { listenError } from '@baton/shared/listening.ts'
import { noCommand } from '../src/cli/args.ts'
import { commandIn } from '../src/cli/table.ts'
import { lineOf, wrongOf, type Wrong } from '../src/cli/wrong.ts'
import { lockData } from '../src/daemon/data-lock.ts'
import { loadIdentity, saveIdentity, saveRelay } from '../src/daemon/identity.ts'

let folder: string
/** No relay of ours. */
let other: Server
let port: number
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'baton-wrong-'))
  other = createServer((_request, response) => response.writeHead(404).end('<h1>Not Found</h1>'))
  await once(other.listen(0, '127.0.0.1'), 'listening')
  port = (other.address() as AddressInfo).port
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text)
  await write('file', 'text')
  await write('empty', '')
  await write('agent.ts', 'export default async function main() {}')
  await write('broken.ts', 'export default (')
  for (const name of ['damaged', 'no-relay', 'bad-relay', 'used', 'away']) {
    await mkdir(join(folder, name))
    const account = newAccount()
    await saveIdentity(join(folder, name), { account, device: newDevice(account) })
  }
  await write('damaged/identity.json', '{"v":1')
  await write('bad-relay/relay.json', '{"origin":"nonsense"}')
  await saveRelay(join(folder, 'used'), { origin: `http://127.0.0.1:${port}` })
  await saveRelay(join(folder, 'away'), { origin: 'http://127.0.0.1:9' })
  await quiet('guest', 'new', at('agent.ts'), '-o', at('s.baton'))
  await quiet('guest', 'step', at('s.baton'))
})
afterAll(async () => {
  other.close()
  await rm(folder, { recursive: true })
})

const at = (name: string): string => join(folder, name)

/** `@name` stands for a file of the folder, `@port` for where no relay of ours listens. */
const filled = (line: string): string[] =>
  line
    .split(' ')
    .map((word) => word.replace('@port', String(port)).replace(/@(\S+)/, (_, name: string) => at(name)))

async function run(words: readonly string[]): Promise<number> {
  const found = commandIn(words)
  if (!found) throw noCommand(words)
  return (await found.command.load())(found.args)
}

async function quiet(...words: string[]): Promise<void> {
  const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  try {
    await run(words)
  } finally {
    printed.mockRestore()
  }
}

async function wrong(...words: string[]): Promise<Wrong> {
  try {
    await quiet(...words)
  } catch (error) {
    return wrongOf(error, words)
  }
  throw new Error(`baton ${words.join(' ')} was not refused`)
}

/** Says what happened, then what to do, as one would to somebody. */
function expectWords({ message, todo }: Wrong): void {
  expect(message).toMatch(/^\S.*[.)?:!]$/s)
  expect(todo).toMatch(/^[A-Z]/)
  expect(lineOf({ message, todo })).not.toMatch(
    /undefined|\[object|Error:|, open '|illegal operation|\n\s+at /,
  )
}

const LINK = `pair=${'a'.repeat(43)}`

const CASES: readonly [line: string, exit: Wrong['exit'], code: string, words: RegExp][] = [
  // a wrong command line
  ['dance', 2, 'usage', /^There is no command "dance"\. See: baton help$/],
  ['guest', 2, 'usage', /^baton guest needs one of: new, step/],
  ['ls --dance', 2, 'usage', /^There is no flag --dance here\. See: baton help ls$/],
  ['ls extra', 2, 'usage', /^"extra" is too much: usage: baton ls \[flags\]\./],
  ['new', 2, 'usage', /^PROMPT is missing: usage: baton new PROMPT… /],
  ['new x --model', 2, 'usage', /^--model takes a value\./],
  ['new x --mode fast', 2, 'usage', /^--mode is one of: plan, ask, edit, full; not "fast"/],
  ['prompt x   ', 2, 'usage', /^The prompt is empty\./],
  ['prompt x hi --id no!', 2, 'usage', /^--id takes 8 to 64 letters/],
  ['set x', 2, 'usage', /^Give --model or --effort\./],
  ['approve x --effect y', 2, 'usage', /^--effect takes the number of a call, not "y"\./],
  ['completion tcsh', 2, 'usage', /^SHELL is one of: bash, zsh, fish; not "tcsh"/],
  ['runner --capacity 0', 2, 'usage', /^--capacity takes a whole number from 1 to 1000, not "0"\./],
  ['runner --relay nonsense', 2, 'usage', /^--relay takes an address such as http:.*not "nonsense"\./],
  ['runner --metrics x', 2, 'usage', /^--metrics takes PORT or HOST:PORT/],
  ['pair --origin nonsense', 2, 'usage', /^--origin takes an address/],
  ['up --port 70000', 2, 'usage', /^--port takes a whole number from 0 to 65535, not "70000"\./],
  ['export x @y --plain --passphrase', 2, 'usage', /^Give --plain or --passphrase, not both\./],
  // folders
  ['ls --data @nothing', 1, 'no-identity', /no account yet\. Join one with --join LINK/],
  [
    'ls --data @file',
    1,
    'data-folder',
    /\(.*file\/identity\.json: a part of its path is no folder \(ENOTDIR\)\) Make it/,
  ],
  ['up --data @file --port 0', 1, 'data-folder', /something else in its place \(EEXIST\)/],
  ['ls --data @damaged', 1, 'data-folder', /identity file is damaged\) Put back a copy of it/],
  ['ls --data @bad-relay', 1, 'data-folder', /relay\.json is damaged\) It is written anew by baton up/],
  ['ls --data @no-relay', 1, 'no-identity', /no account yet/],
  [
    'up --workspace @nothing',
    1,
    'workspace-unfit',
    /nothing is not there\) Give the path of a folder that is there\./,
  ],
  ['trust @file', 1, 'workspace-unfit', /file is no folder\) Give the path/],
  ['doctor --workspace @nothing', 1, 'workspace-unfit', /is not there/],
  // relays and links
  ['runner --data @new', 1, 'no-identity', /Join one with --join LINK/],
  ['runner --data @new --join nonsense', 1, 'link-invalid', /Copy the whole link/],
  [
    `runner --data @new --join http://127.0.0.1:@port/#${LINK}`,
    1,
    'link-invalid',
    /answers at http:.* is no relay of Baton\) Check host and port/,
  ],
  [
    `runner --data @new --join http://127.0.0.1:9/#${LINK}`,
    3,
    'offline',
    /127\.0\.0\.1:9 can not be reached\) Check that it runs/,
  ],
  ['runners --data @away', 3, 'offline', /^The relay can not be reached\. \(http:\/\/127\.0\.0\.1:9\) Check/],
  // files
  ['export x @file', 1, 'file-unusable', /file is there already\. Choose another name, or remove it first\./],
  ['guest new @agent.ts', 2, 'usage', /needs -o FILE/],
  ['guest new @agent.ts -o @s.baton', 1, 'file-unusable', /s\.baton is there already/],
  [
    'guest new @agent.ts -o @no/s.baton',
    1,
    'file-unusable',
    /no\/s\.baton can't be written: it, or its folder, is not there/,
  ],
  ['guest new @none.ts -o @t.baton', 1, 'agent-invalid', /there is no file .*none\.ts/],
  ['guest new @broken.ts -o @t.baton', 1, 'agent-invalid', /broken\.ts can't be bundled/],
  ['guest new @agent.ts -o @t.baton --seed zz', 2, 'usage', /--seed takes 64 hex digits/],
  ['guest new @agent.ts -o @t.baton --engine @nothing', 1, 'file-unusable', /nothing can't be read/],
  [
    'guest step @nothing',
    1,
    'file-unusable',
    /nothing can't be read: it, or its folder, is not there \(ENOENT\)\./,
  ],
  ['guest step @away', 1, 'file-unusable', /away can't be read: it is a folder \(EISDIR\)\./],
  ['guest step @file', 1, 'snapshot-foreign', /Give a file that Baton wrote/],
  ['guest step @empty', 1, 'snapshot-torn', /empty\)/],
  ['guest step @s.baton --fuel x', 2, 'usage', /^--fuel takes a whole number/],
  ['guest inspect @s.baton --fuel 3', 2, 'usage', /^There is no flag --fuel here/],
  ['guest fork @s.baton @s.baton', 1, 'file-unusable', /s\.baton is there already/],
  ['guest reply @s.baton one x', 2, 'usage', /^EFFECT takes a whole number from 1/],
  ['guest reply @s.baton 9 x', 1, 'nothing-waits', /\(effect 9\) Open: nothing\. See: baton guest inspect/],
]

it.each(CASES)('V2: baton %s', async (line, exit, code, words) => {
  const told = await wrong(...filled(line))
  expect([told.exit, told.code]).toEqual([exit, code])
  expect(lineOf(told)).toMatch(words)
  expectWords(told)
})

describe('the same words', () => {
  it('Z9: of a second runner on a data folder, with what to type', async () => {
    await using _held = await lockData(at('used'))
    const told = await wrong('runner', '--data', at('used'))
    expect([told.exit, told.code]).toEqual([1, 'data-in-use'])
    expect(told.todo).toMatch(/\n {2}baton runner --data \S+used-2 --name \S+ --join '<LINK>'$/)
  })

  it('V2: what nobody foresaw: a refusal of the system is the person’s to mend, the rest is a bug', () => {
    const refused = Object.assign(new Error("EACCES: permission denied, open '/x'"), {
      code: 'EACCES',
      path: '/x',
    })
    expect(wrongOf(refused, ['ls'])).toMatchObject({
      ...{ code: 'file-unusable', exit: 1 },
      message: expect.stringMatching(/\/x: there is no permission \(EACCES\)\.$/) as string,
    })
    const full = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC', path: '/x' })
    expect(wrongOf(full, ['ls'])).toMatchObject({ code: 'disk-full', exit: 1 })
    const bug = wrongOf(new TypeError('x is not a function'), ['ls'])
    expect(bug).toMatchObject({
      code: 'internal',
      message: 'Something went wrong inside. (x is not a function)',
    })
    expect(bug.todo).toMatch(/BATON_DEBUG=1/)
    expect(wrongOf(new BatonError('usage', 'So.'), ['guest', 'step']).todo).toBe('See: baton help guest step')
  })

  it('V2: a network that refuses and a program that is not there are no files', async () => {
    const failed = async (emitter: EventEmitter): Promise<Wrong> =>
      wrongOf((await once(emitter, 'error'))[0], ['ls'])
    const closed = createServer()
    await once(closed.listen(0, '127.0.0.1'), 'listening')
    const { port: nobody } = closed.address() as AddressInfo
    closed.close()
    expect(await failed(connect(nobody, '127.0.0.1'))).toMatchObject({ code: 'offline', exit: 3 })
    const missing = await failed(spawn('no-such-program-of-baton'))
    expectWords(missing)
    expect(missing.message).toMatch(/The program no-such-program-of-baton can not be started: .*ENOENT/)
    const elsewhere = { host: '203.0.113.1', port: 9 }
    const [cause] = await once(createServer().listen(elsewhere), 'error')
    const refused = wrongOf(listenError(cause, elsewhere), ['runner'])
    expectWords(refused)
    expect(refused).toMatchObject({ code: 'address-unusable', exit: 1 })
    expect(refused.message).toMatch(/203\.0\.113\.1, port 9: this machine has no such address/)
  })

  it('V2: a damaged relay.json is mended by what writes it anew', async () => {
    await saveRelay(at('bad-relay'), { origin: 'http://127.0.0.1:9' })
    expect(await readFile(at('bad-relay/relay.json'), 'utf8')).toBe('{"origin":"http://127.0.0.1:9"}\n')
    expect(await loadIdentity(at('bad-relay'))).toBeDefined()
  })
})
