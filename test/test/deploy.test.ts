/** What stands in deploy/ can be parsed, says nothing to Baton that Baton does not know, and fits together. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readFlags } from '@baton/relay/flags.ts'
import { dataFolder } from '@baton/runner/cli/args.ts'
import { DRAIN_LATE_MS, DRAIN_WITHIN_MS } from '@baton/runner/cli/runner.ts'
import { TABLE, type Command } from '@baton/runner/cli/table.ts'
import { metricsAddress, serveMetrics } from '@baton/runner/daemon/metrics.ts'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import * as v from 'valibot'
import { describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../src/check/sources.ts'
import { alive, Ground, signal } from '../src/processes.ts'
import { until } from '../src/until.ts'

const DEPLOY = join(ROOT, 'deploy')
const read = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8')
const hosting = readFileSync(join(ROOT, 'docs/hosting.md'), 'utf8')

/** What is wrong with a command line of `baton`; nothing is good. */
function faultsOf([name = '', ...words]: string[]): string[] {
  const table: Readonly<Record<string, Command>> = TABLE
  const command = Object.hasOwn(table, name) ? table[name] : undefined
  if (!command) return [`there is no command ${name}`]
  const faults: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? ''
    const flag = word.startsWith('--') ? command.flags[word.slice(2)] : undefined
    if (!flag) faults.push(`${name} does not know ${word}`)
    else if (flag.type === 'string' && (words[++at] ?? '--').startsWith('--'))
      faults.push(`${word} needs a value`)
  }
  return faults
}

test('a command line that Baton does not know is noticed', () => {
  expect(faultsOf(['runner', '--pool', 'cloud', '--capacity', '8'])).toEqual([])
  expect(faultsOf(['runner', '--pool', '--capacity', '8', '--speed', 'x', 'y'])).toEqual([
    ...['--pool needs a value', 'runner does not know 8', 'runner does not know --speed'],
    ...['runner does not know x', 'runner does not know y'],
  ])
  expect(faultsOf(['run'])).toEqual(['there is no command run'])
})

/** Is there such a metric? */
const METRICS = ['relay/src/metrics.ts', 'runner/src/daemon/metrics.ts'].map((path) =>
  readFileSync(join(ROOT, path), 'utf8'),
)
const isMetric = (name: string): boolean => METRICS.some((source) => source.includes(`'${name}'`))

/** Seconds that an operating system has to grant: twice as long as a runner takes at most, and time for slow disks. */
const STOP_S = Math.max(30, (2 * (DRAIN_WITHIN_MS + DRAIN_LATE_MS)) / 1000)

/** The program itself says what it makes of a command line; a runner's flags are read here as there. */
function portsOf([name, ...words]: readonly string[]): {
  port: number | undefined
  metrics: number | undefined
} {
  if (name === 'relay') {
    const { port, metrics } = readFlags([...words], {})
    return { port, metrics: metrics?.port }
  }
  const at = words.indexOf('--metrics')
  return { port: undefined, metrics: at < 0 ? undefined : metricsAddress(words[at + 1] ?? '').port }
}

/** The page on hosting says this. */
function assertTold(words: string): void {
  expect(hosting.includes(words), `docs/hosting.md: ${words}`).toBe(true)
}

function assertRunnable(program: string): void {
  const path = join(ROOT, program)
  expect(readFileSync(path, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(statSync(path).mode & 0o111).toBe(0o111)
}

/** Instructions of the last stage, which is what runs. */
const stage = (() => {
  const lines = read('Dockerfile')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  const known = 'FROM WORKDIR COPY RUN USER ENV VOLUME EXPOSE STOPSIGNAL ENTRYPOINT CMD'.split(' ')
  const all = lines.map((line) => {
    const [word = '', ...rest] = line.split(/\s+/)
    if (!known.includes(word)) throw new Error(`Dockerfile: ${line}`)
    return { word, rest, text: rest.join(' ') }
  })
  const last = all.slice(all.findLastIndex(({ word }) => word === 'FROM'))
  const only = (word: string): { text: string; at: number } => {
    const found = last.flatMap((line, at) => (line.word === word ? [{ text: line.text, at }] : []))
    expect(found, word).toHaveLength(1)
    return found[0] ?? { text: '', at: -1 }
  }
  return { all, last, only }
})()

/** Where the image says that what has to last is kept. */
const imageData = (): string => stage.only('VOLUME').text

describe('Dockerfile', () => {
  test('it starts Baton as a user without rights', () => {
    const { text, at } = stage.only('ENTRYPOINT')
    const [node, program = ''] = JSON.parse(text) as string[]
    expect(node).toBe('node')
    const copied = stage.last.find(
      ({ word, text: what }) => word === 'COPY' && what.startsWith('--from=build'),
    )
    const [, from = '', to = ''] = copied?.rest ?? []
    expect([from, to]).toEqual(['/app', '/app'])
    expect(program.startsWith(`${to}/`)).toBe(true)
    assertRunnable(program.slice(to.length + 1))
    const user = stage.only('USER')
    expect(user.text).toBe('node')
    expect(user.at).toBeLessThan(at)
    // What npm pruned and built is the other stage's: nothing else makes files here.
    expect(
      stage.all.filter(({ word }) => word === 'FROM').map(({ text: image }) => image.split(' ')[0]),
    ).toEqual(['node:24-bookworm-slim', 'node:24-bookworm-slim'])
  })

  test('identity and work trees lie in the volume, in a folder that its user may write to', () => {
    const data = imageData()
    const env = stage.only('ENV')
    for (const [, name = '', value = ''] of env.text.matchAll(/(\w+)=(\S+)/g)) vi.stubEnv(name, value)
    try {
      expect(dataFolder(undefined)).toBe(data)
      expect(readFlags([], process.env).data).toBe(data)
    } finally {
      vi.unstubAllEnvs()
    }
    const volume = stage.only('VOLUME')
    const run = stage.only('RUN')
    const user = stage.only('USER').text
    const [, flags = '', made] = /\binstall --directory((?: --\S+)*) (\S+)$/.exec(run.text) ?? []
    expect(made).toBe(data)
    expect(flags.trim().split(' ').toSorted()).toEqual([`--group=${user}`, '--mode=700', `--owner=${user}`])
    // What is done to a folder after it became a volume is lost.
    expect(run.at).toBeLessThan(volume.at)
  })

  test('it has what sessions need, is told to end by SIGTERM, and names the port of a relay', () => {
    for (const program of ['bash', 'ca-certificates', 'git'])
      expect(stage.only('RUN').text).toContain(` ${program} `)
    expect(stage.only('STOPSIGNAL').text).toBe('SIGTERM')
    expect(Number(stage.only('EXPOSE').text)).toBe(portsOf(['relay']).port)
    expect(stage.only('CMD').text).toBe('["help"]')
  })

  test('what it copies is there, the manifest of every workspace too', () => {
    const copies = stage.all.filter(({ word, text }) => word === 'COPY' && !text.includes('--from'))
    const sources = copies.flatMap(({ rest }) => rest.slice(0, -1))
    for (const source of sources) expect(existsSync(join(ROOT, source))).toBe(true)
    const { workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      workspaces: string[]
    }
    for (const workspace of workspaces) expect(sources).toContain(`${workspace}/package.json`)
  })
})

describe('compose.yaml', () => {
  const Service = v.looseObject({
    image: v.string(),
    command: v.array(v.string()),
    build: v.optional(v.object({ context: v.string(), dockerfile: v.string() })),
    environment: v.optional(v.record(v.string(), v.string()), {}),
    volumes: v.optional(v.array(v.string()), []),
    ports: v.optional(v.array(v.string()), []),
    healthcheck: v.looseObject({ test: v.array(v.string()) }),
    stop_grace_period: v.pipe(v.string(), v.regex(/^\d+s$/)),
    depends_on: v.optional(v.record(v.string(), v.object({ condition: v.literal('service_healthy') })), {}),
    restart: v.literal('unless-stopped'),
  })
  const Compose = v.looseObject({
    services: v.record(v.string(), Service),
    volumes: v.record(v.string(), v.nullable(v.unknown())),
  })
  const { services, volumes } = v.parse(Compose, parse(read('compose.yaml'), { strict: true }))
  const all = Object.values(services)
  const running = (name: string) =>
    all.filter(({ image, command }) => image === 'baton' && command[0] === name)
  const [relay] = running('relay')
  const [runner] = running('runner')
  const mountsOf = ({ volumes: mounts }: v.InferOutput<typeof Service>): { name: string; target: string }[] =>
    mounts.map((mount) => {
      const [name = '', target = ''] = mount.split(':')
      return { name, target }
    })

  test('its commands are Baton’s own, and what they need is there', () => {
    const own = all.filter(({ image }) => image === 'baton')
    expect(new Set(own.map(({ command }) => command[0]))).toEqual(new Set(['relay', 'runner']))
    for (const { command } of own) expect(faultsOf(command)).toEqual([])
    for (const { build, depends_on } of all) {
      if (build) expect(existsSync(resolve(DEPLOY, build.context, build.dockerfile))).toBe(true)
      for (const name of Object.keys(depends_on)) expect(services).toHaveProperty([name])
    }
  })

  test('what has to outlive a container lies in a volume of its own, where the image keeps it', () => {
    const names = all.flatMap((service) => mountsOf(service).map(({ name }) => name))
    expect(names.toSorted()).toEqual(Object.keys(volumes).toSorted())
    for (const service of running('runner')) {
      expect(mountsOf(service).map(({ target }) => target)).toEqual([imageData()])
      expect(service.environment).not.toHaveProperty('BATON_DATA')
      expect(service.command).not.toContain('--data')
    }
    // As the image of Redis has it, and `--appendonly` writes there.
    expect(services['redis']?.image).toMatch(/^redis:7-/)
    expect(services['redis'] && mountsOf(services['redis']).map(({ target }) => target)).toEqual(['/data'])
    expect(services['redis']?.command).not.toContain('--dir')
    expect(relay?.environment['REDIS_URL']).toBe('redis://redis:6379')
  })

  test('D1: Redis syncs every write and evicts nothing; a runner has time to let go', () => {
    expect(services['redis']?.command.join(' ')).toContain('--appendonly yes')
    expect(services['redis']?.command.join(' ')).toContain('--appendfsync always')
    expect(services['redis']?.command.join(' ')).toContain('--maxmemory-policy noeviction')
    for (const { stop_grace_period } of running('runner'))
      expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThanOrEqual(STOP_S)
  })

  /** Runs a health check as the container would, on other ports than there. */
  function check(
    { healthcheck }: v.InferOutput<typeof Service>,
    port: number | undefined,
    here: number,
  ): Promise<number | null> {
    const [how, command, flag, program = ''] = healthcheck.test
    expect([how, command, flag]).toEqual(['CMD', 'node', '--eval'])
    const there = `http://127.0.0.1:${port}/`
    expect(program).toContain(there)
    const args = ['--eval', program.replace(there, `http://127.0.0.1:${here}/`)]
    const child = spawn(process.execPath, args, { stdio: 'ignore' })
    return new Promise((settle) => child.once('exit', settle))
  }

  test('the health check of a runner tells whether it is connected', async () => {
    if (!runner) throw new Error('no runner')
    const { metrics: port } = portsOf(runner.command)
    let connected = true
    const numbers = { held: 1, capacity: 8, waiting: 1 }
    const served = await serveMetrics({ host: '127.0.0.1', port: 0 }, () => ({ ...numbers, connected }))
    const here = Number(new URL(served.url).port)
    expect(await check(runner, port, here)).toBe(0)
    connected = false
    expect(await check(runner, port, here)).toBe(1)
    await served.close()
    expect(await check(runner, port, here)).toBe(1)
  })

  test('the health check of a relay tells whether it answers; others find it at its port', async () => {
    if (!relay) throw new Error('no relay')
    const { port } = portsOf(relay.command)
    await using ground = await Ground.open()
    const { port: here, process: program } = await ground.relay({})
    expect(await check(relay, port, here)).toBe(0)
    signal(program.pid, 'SIGKILL')
    await until('it is gone', () => !alive(program.pid))
    expect(await check(relay, port, here)).toBe(1)
    expect(relay.ports).toEqual([`127.0.0.1:${port}:${port}`])
    assertTold(`http://relay:${port}/#pair`)
    expect(relay.command.join(' ')).toContain('--host 0.0.0.0')
  })

  test('no dollar is taken for a variable', () => {
    const dollars = read('compose.yaml').match(/\$[^$]?/g) ?? []
    expect(dollars.every((at) => at === '${')).toBe(true)
  })
})

describe('systemd', () => {
  const units = readdirSync(join(DEPLOY, 'systemd'))
  const known: Record<string, string[]> = {
    Unit: ['Description'],
    Service: [
      ...['Type', 'Environment', 'EnvironmentFile', 'ExecStart', 'Restart', 'RestartSec', 'KillMode'],
      ...['TimeoutStopSec', 'UMask', 'NoNewPrivileges'],
    ],
    Install: ['WantedBy'],
  }

  test('there is one for each program', () => {
    expect(units).toEqual(['baton-relay.service', 'baton-runner.service'])
  })

  test.each(units)('%s', (name) => {
    const settings = new Map<string, string>()
    let section = ''
    const text = read(join('systemd', name))
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue
      const head = /^\[(\w+)\]$/.exec(line)?.[1]
      if (head !== undefined) section = head
      else {
        const [, key = '', value] = /^([A-Z]\w*)=(.*)$/.exec(line) ?? []
        expect(known[section], line).toContain(key)
        settings.set(`${section}.${key}`, value ?? '')
      }
    }
    const [, which = ''] = /^baton-(\w+)\.service$/.exec(name) ?? []
    expect(text).toContain(`~/.config/systemd/user/${name}`)
    assertTold(`(../deploy/systemd/${name})`)
    const [program = '', ...words] = (settings.get('Service.ExecStart') ?? '').split(' ')
    // The clone is where the page says.
    assertTold('Clone the repository to `~/baton`')
    expect(program).toBe('%h/baton/runner/bin/baton.mjs')
    assertRunnable('runner/bin/baton.mjs')
    expect(words[0]).toBe(which)
    expect(faultsOf(words)).toEqual([])
    expect(portsOf(words).metrics).toBeGreaterThan(0)
    expect(settings.get('Service.EnvironmentFile')).toBe(`-%h/.config/baton/${which}.env`)
    assertTold(`~/.config/baton/${which}.env`)
    // `env node`, git and redis-server are looked for there.
    expect(settings.get('Service.Environment')).toMatch(
      /^PATH=%h\/\.local\/bin:\/usr\/local\/bin:\/usr\/bin:\/bin$/,
    )
    expect(settings.get('Service.Type')).toBe('exec')
    expect(settings.get('Service.Restart')).toBe('on-failure')
    // Told twice, a runner ends at once: only the program itself may be told.
    expect(settings.get('Service.KillMode')).toBe('mixed')
    expect(Number(settings.get('Service.TimeoutStopSec'))).toBeGreaterThanOrEqual(STOP_S)
    expect(settings.get('Service.UMask')).toBe('0077')
    expect(settings.get('Install.WantedBy')).toBe('default.target')
  })

  test('both on one machine serve their numbers at different ports', () => {
    const ports = units.map((name) => {
      const [, line = ''] = /^ExecStart=\S+ (.*)$/m.exec(read(join('systemd', name))) ?? []
      return portsOf(line.split(' ')).metrics
    })
    expect(new Set(ports).size).toBe(units.length)
  })
})

describe('launchd', () => {
  /** Elements in order: [{ tag: [children] } | { '#text': text }, …]. */
  type Element = { [tag: string]: Element[] | string }
  const parser = new XMLParser({ preserveOrder: true, parseTagValue: false, ignoreDeclaration: true })

  function valueOf(element: Element): unknown {
    const [tag = ''] = Object.keys(element)
    const children = element[tag]
    if (typeof children === 'string' || children === undefined) return children
    switch (tag) {
      case 'true':
      case 'false':
        return tag === 'true'
      case 'integer':
        return Number(children.map(valueOf).join(''))
      case 'array':
        return children.map(valueOf)
      case 'dict': {
        const pairs: [string, unknown][] = []
        for (let at = 0; at < children.length; at += 2) {
          const [key, value] = children.slice(at, at + 2)
          if (!key?.['key'] || !value) throw new Error('a dict is keys and values by turns')
          pairs.push([String(valueOf(key)), valueOf(value)])
        }
        return Object.fromEntries(pairs)
      }
      default:
        return children.map(valueOf).join('')
    }
  }

  const Agent = v.strictObject({
    Label: v.string(),
    ProgramArguments: v.array(v.string()),
    EnvironmentVariables: v.strictObject({ PATH: v.string() }),
    RunAtLoad: v.literal(true),
    KeepAlive: v.strictObject({ SuccessfulExit: v.literal(false) }),
    ExitTimeOut: v.pipe(v.number(), v.minValue(STOP_S)),
    Umask: v.literal(0o077),
    StandardErrorPath: v.string(),
  })
  const files = readdirSync(join(DEPLOY, 'launchd'))

  test('there is one for each program', () => {
    expect(files).toEqual(['app.baton.relay.plist', 'app.baton.runner.plist'])
  })

  test.each(files)('%s', (name) => {
    const text = read(join('launchd', name))
    expect(XMLValidator.validate(text)).toBe(true)
    const parsed = parser.parse(text) as Element[]
    const plist = parsed.find((element) => element['plist'])?.['plist']
    const [dict] = Array.isArray(plist) ? plist : []
    const agent = v.parse(Agent, dict && valueOf(dict))
    const [, which = ''] = /^app\.baton\.(\w+)\.plist$/.exec(name) ?? []
    expect(agent.Label).toBe(`app.baton.${which}`)
    expect(text).toContain(`~/Library/LaunchAgents/${name}`)
    assertTold(`(../deploy/launchd/${name})`)
    const [program, ...words] = agent.ProgramArguments
    expect(program).toBe('/Users/YOU/baton/runner/bin/baton.mjs')
    expect(words[0]).toBe(which)
    expect(faultsOf(words)).toEqual([])
    expect(agent.EnvironmentVariables.PATH).toBe('/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin')
    expect(agent.StandardErrorPath).toBe(`/Users/YOU/Library/Logs/baton-${which}.log`)
  })
})

describe('docs/hosting.md', () => {
  test('the commands that it shows are Baton’s own', () => {
    const shown = Array.from(
      hosting.matchAll(/^(?:npx baton | +)((?:runner|relay|pair)\b.*?)(?: +#.*)?$/gm),
      ([, line = '']) => line,
    )
    expect(shown.length).toBeGreaterThanOrEqual(3)
    for (const line of shown) {
      expect(faultsOf(line.split(/\s+/))).toEqual([])
    }
  })

  test('the files and metrics that it names are there', () => {
    for (const [, path = ''] of hosting.matchAll(/\]\(\.\.\/([^)#]+)\)/g))
      expect(existsSync(join(ROOT, path)), path).toBe(true)
    const names = [...hosting.matchAll(/`(baton_\w+?)(?:_bucket)?(?:\{[^`]*\})?`/g)].map(
      ([, name = '']) => name,
    )
    expect(names.length).toBeGreaterThan(4)
    for (const name of names) expect(isMetric(name), name).toBe(true)
  })
})
