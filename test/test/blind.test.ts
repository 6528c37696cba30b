/** I9: what the relay stores, logs and holds, searched for words that only the ends may know. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../src/cluster.ts'
import { treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

const CANARIES = {
  prompt: 'canary-prompt-7f3a',
  code: 'canary-code-91bc',
  file: 'canary-file-c0de',
  output: 'canary-output-5e5e',
  title: 'canary-title-ab12',
  runner: 'canary-runner-77aa',
  pool: 'canary-pool-31fe',
}

/** All bytes below a folder. */
function bytesBelow(folder: string): Buffer {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
  return Buffer.concat(
    names.filter((entry) => entry.isFile()).map((entry) => readFileSync(join(entry.parentPath, entry.name))),
  )
}

/** Every way in which text could lie there: as it is, base64 at each alignment, hex. */
function forms(word: string): string[] {
  const shifted = [0, 1, 2].map((pad) => {
    const text = Buffer.from(' '.repeat(pad) + word).toString('base64')
    return text.slice(Math.ceil((pad * 8) / 6), -4)
  })
  return [
    word,
    Buffer.from(word).toString('hex'),
    ...shifted,
    ...shifted.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
  ]
}

function expectNone(where: string, haystack: Buffer): void {
  expect(haystack.length, where).toBeGreaterThan(0)
  for (const [what, word] of Object.entries(CANARIES)) {
    for (const form of forms(word)) expect(haystack.includes(form), `${what} in ${where}`).toBe(false)
  }
}

it('I9: prompts, code, file names, output, titles and names appear nowhere at the relay', async () => {
  await using cluster = await Cluster.open({
    script: 'canaries',
    repo: { extra: { [`${CANARIES.file}.txt`]: `${CANARIES.code}\n` } },
    env: { BATON_LOG: 'trace' },
  })
  const { client } = cluster
  const one = await cluster.runner(CANARIES.runner, { args: ['--pool', CANARIES.pool] })
  const sid = await client.start(
    { prefer: one.id },
    { agent: 'coder', workspace: cluster.repo, mode: 'full' },
    CANARIES.title,
  )
  await client.command(sid, 'prompt', { text: `Look for ${CANARIES.prompt}.` })
  const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)

  // The words did go through: the ends know them.
  const known = JSON.stringify(entries)
  for (const word of [CANARIES.prompt, CANARIES.output, CANARIES.file, CANARIES.code])
    expect(known).toContain(word)
  expect(Object.keys(treeOf(cluster.worktree(one, sid)))).toContain(`${CANARIES.file}.txt`)

  const socket = await until('Redis has its socket', () => findSocket(cluster.relay.data))
  const redis = new Redis(socket)
  // Else a dump may hold a word in compressed form.
  await redis.config('SET', 'rdbcompression', 'no')
  const keys = await redis.keysBuffer('*')
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  const values = Buffer.concat([...keys, ...dumps.filter((dump) => dump !== null)])
  redis.disconnect()
  expect(keys.length).toBeGreaterThan(5)
  expectNone('the keys of Redis', values)
  expectNone("Redis' files", bytesBelow(cluster.relay.data))
  expectNone("the relay's log", Buffer.from(cluster.relay.process.output))
})

const turnEnded = (entries: Opened[]): boolean =>
  entries.filter(
    (entry) => entry.kind === 'intent' && entry.body.kind === 'prompt' && entry.body.prompt?.steer !== true,
  ).length >= 2

function findSocket(data: string): string | undefined {
  return readdirSync(join(data, 'redis'))
    .filter((name) => name.endsWith('.sock'))
    .map((name) => join(data, 'redis', name))[0]
}
