/** Odd output, commands and calls on real processes: each is carried, ended or refused in words, and the session goes on. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { alive } from '../src/processes.ts'
import { Trip } from '../src/trip.ts'
import { until } from '../src/until.ts'

/** What the model was sent last, and whether the service would have taken all of it. */
async function lastRequest(cluster: Cluster): Promise<string> {
  const { requests } = await cluster.model.state()
  expect(requests.filter(({ end }) => end === 'invalid')).toEqual([])
  return JSON.stringify(requests.at(-1)?.body)
}

async function pidIn(path: string): Promise<number> {
  return until('a pid is written', () => existsSync(path) && Number(readFileSync(path, 'utf8')))
}

it('F50: NUL, lone surrogates, invalid bytes and 100 MB of output reach the model whole or are told, also after a move', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const [laptop, cloud] = [await cluster.runner('laptop'), await cluster.runner('cloud')]
  const trip = await Trip.begin(cluster, laptop)
  const odd = await trip.errand(String.raw`printf 'a\0b|\xed\xa0\x80|\xff\xfe|😀\n'`)
  expect(odd).toMatch(/^a\0b\|\ufffd+\|\ufffd\ufffd\|😀\n/)
  expect(await lastRequest(cluster)).toContain(String.raw`a\u0000b|`)
  // Of the model's own: JSON can say half a surrogate pair.
  expect(await trip.errand(String.raw`raw bash {"command":"printf '%s|' 'x\ud800y'"}`)).toContain(
    'half of a surrogate pair',
  )
  await lastRequest(cluster)
  const flood = await trip.errand('head -c 104857600 /dev/zero | tr "\\0" "x"; echo unreached')
  expect(flood).toContain('Ended: it wrote more than 64 MB')
  expect(flood.length).toBeLessThan(100_000)
  await trip.move(cloud)
  expect(await trip.errand('echo still here')).toContain('still here')
  expect(await lastRequest(cluster)).toContain(String.raw`a\u0000b|`)
})

it('F51: input of a tool that is no JSON, no object, or of another shape is refused in words, nothing runs, and the next call works', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const trip = await Trip.begin(cluster, await cluster.runner('laptop'))
  for (const wrong of ['{"command": touch ran', '"touch ran"', '{"commando": "touch ran"}']) {
    const before = (await cluster.model.state()).count
    await trip.ask(`raw bash ${wrong}`)
    await until('the model has heard of it', async () => (await cluster.model.state()).count >= before + 2)
    expect(await lastRequest(cluster)).toContain('"is_error":true')
  }
  expect(await trip.errand('ls; echo works')).toMatch(/^(?!.*ran\b).*works/s)
  await lastRequest(cluster)
})

it('H16: nobody is asked for such a call, nor for one out of the workspace; the next good one waits for a person', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const trip = await Trip.begin(cluster, await cluster.runner('laptop'), undefined, 'ask')
  const wrongs = [
    ['{"command": touch ran', 'bash', 'is no JSON object'],
    ['{"commando": "touch ran"}', 'bash', 'command is missing'],
    ['{"path": "../../x", "content": "x"}', 'write', 'leads out of the workspace'],
    ['{"command": "touch ran"}', 'bassh', 'There is no tool'],
  ] as const
  for (const [wrong, name, words] of wrongs) {
    const before = (await cluster.model.state()).count
    await trip.ask(`raw ${name} ${wrong}`)
    await until('the model has heard of it', async () => (await cluster.model.state()).count >= before + 2)
    expect(await lastRequest(cluster)).toContain(words)
  }
  await trip.ask('touch ran')
  await until('it waits', async () => (await cluster.client.info(trip.sid)).status === 'waiting')
  const entries = await cluster.client.entries(trip.sid)
  const asked = entries.flatMap((entry) =>
    entry.kind === 'intent' && entry.body.approve ? [entry.body.effect] : [],
  )
  const isTold = (effect: number): boolean =>
    entries.some((entry) => entry.kind === 'outcome' && entry.body.effect === effect)
  expect(asked.map(isTold)).toEqual([true, true, false])
})

it('F52 T1: what a command leaves running, by fork, nohup or setsid, has ended when its result is there', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const trip = await Trip.begin(cluster, await cluster.runner('laptop'))
  const pids = await cluster.ground.newFolder('pids')
  const lives = (name: string): string => `sh -c 'echo $$ > ${pids}/${name}; exec sleep 1000'`
  const said = await trip.errand(
    [
      `${lives('child')} &`,
      `nohup ${lives('nohup')} > /dev/null 2>&1 &`,
      `setsid ${lives('setsid')} > /dev/null 2>&1 < /dev/null &`,
      `(setsid sh -c "setsid ${lives('daemon').replaceAll('$', String.raw`\$`)} & " > /dev/null 2>&1 &)`,
      `while [ $(ls ${pids} | wc -l) -lt 4 ]; do sleep 0.05; done; echo started`,
    ].join('\n'),
  )
  expect(said).toContain('started')
  for (const name of ['child', 'nohup', 'setsid', 'daemon']) {
    expect([name, alive(await pidIn(join(pids, name)))]).toEqual([name, false])
  }
})

it('T2 T3: a background job ends when its session moves: told to the person and, asked for it, to the agent', async () => {
  await using cluster = await Cluster.open({ script: 'errand' })
  const [laptop, cloud] = [await cluster.runner('laptop'), await cluster.runner('cloud')]
  const trip = await Trip.begin(cluster, laptop)
  const pids = await cluster.ground.newFolder('pids')
  const command = `echo $$ > ${pids}/job; echo begun; exec sleep 1000`
  const started = await trip.errand(`bash ${JSON.stringify({ command, background: true })}`)
  const id = /job-[\w@-]+/.exec(started)?.[0] ?? started
  const pid = await pidIn(join(pids, 'job'))
  expect(await trip.errand(`job ${JSON.stringify({ action: 'output', id })}`)).toContain('begun')
  expect(alive(pid)).toBe(true)
  await trip.move(cloud)
  await until('the job has ended', () => !alive(pid))
  expect((await trip.notices()).at(-1)).toBe(
    `Background jobs ended here, because the session leaves this machine: ${command}`,
  )
  expect(await trip.errand(`job ${JSON.stringify({ action: 'output', id })}`)).toMatch(
    /ended when the session left laptop/,
  )
})

describe('I5: a call that must not be repeated, its runner killed in the middle', () => {
  /** Calls a tool that counts its runs outside and never ends; kills the runner; lets the other go on. */
  async function killedDuring(
    config: (counts: string) => string,
    call: string,
    runs: (counts: string) => number,
    afterwards: (counts: string) => Promise<void> = async () => undefined,
  ) {
    const cluster = await Cluster.open({ script: 'errand' })
    await using _cluster = cluster
    const counts = await cluster.ground.newFolder('counts')
    mkdirSync(counts, { recursive: true })
    writeFileSync(join(cluster.repo, 'baton.config.ts'), config(counts))
    const laptop: ClusterRunner = await cluster.runner('laptop')
    const trip = await Trip.begin(cluster, laptop)
    const prompt = await trip.ask(call)
    await until('it runs', () => runs(counts) === 1)
    const cloud = await cluster.runner('cloud')
    await cluster.kill(laptop)
    await afterwards(counts)
    const said = await trip.over(prompt)
    expect((await cluster.client.info(trip.sid)).holder).toBe(cloud.id)
    expect(runs(counts)).toBe(1)
    const request = await lastRequest(cluster)
    expect(await trip.errand('echo goes on')).toContain('goes on')
    return { said, request }
  }
  const lines = (path: string, each: number): number =>
    existsSync(path) ? readFileSync(path, 'utf8').length / each : 0

  it('a host tool: ran once, counted outside; the agent is told that it may have run', async () => {
    const { said, request } = await killedDuring(
      (counts) => `import { appendFileSync } from 'node:fs'
export default { tools: { launch: { description: 'L', replay: 'never', input: { type: 'object' }, execute: () => {
  appendFileSync(${JSON.stringify(join(counts, 'launched'))}, 'x'); return new Promise(() => undefined) } } } }`,
      'launch {}',
      (counts) => lines(join(counts, 'launched'), 1),
    )
    expect(said).toBe('error: interrupted')
    expect(request).toContain('may have run')
  })

  it('a tool of an MCP server: the same, and its server has ended with its runner', async () => {
    const server = join(import.meta.dirname, '../../runner/test/fixtures/mcp-server.ts')
    const { said, request } = await killedDuring(
      (counts) => {
        const fix = { command: process.execPath, args: [server], env: { MCP_FOLDER: counts } }
        return `export default ${JSON.stringify({ mcp: { fix } })}`
      },
      'mcp__fix__hang {}',
      (counts) => lines(join(counts, 'hanging'), 'yes'.length),
      async (counts) => {
        const pids = readFileSync(join(counts, 'starts'), 'utf8').trim().split('\n')
        await until('its server has ended', () => !pids.some((pid) => alive(Number(pid))))
      },
    )
    expect(said).toBe('error: interrupted')
    expect(request).toContain('may have run')
  })
})
