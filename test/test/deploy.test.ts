/** What stands in deploy/ can be parsed, and says nothing to Baton that Baton does not know. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Script } from 'node:vm'
import { TABLE, type Command } from '@baton/runner/cli/table.ts'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../src/check/sources.ts'

const DEPLOY = join(ROOT, 'deploy')
const read = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8')

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

/** Lines of the Dockerfile, each whole. */
const DOCKER = read('Dockerfile')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
/** Where the container keeps identity and work trees. */
const DATA = /^ENV .*\bBATON_DATA=(\S+)/m.exec(DOCKER.join('\n'))?.[1] ?? 'BATON_DATA is not set'

describe('compose.yaml', () => {
  const Service = v.looseObject({
    image: v.string(),
    command: v.array(v.string()),
    build: v.optional(v.object({ context: v.string(), dockerfile: v.string() })),
    volumes: v.optional(v.array(v.string()), []),
    healthcheck: v.looseObject({ test: v.array(v.string()) }),
    stop_grace_period: v.pipe(v.string(), v.regex(/^\d+s$/)),
    depends_on: v.optional(v.record(v.string(), v.object({ condition: v.literal('service_healthy') })), {}),
  })
  const Compose = v.looseObject({
    services: v.record(v.string(), Service),
    volumes: v.record(v.string(), v.nullable(v.unknown())),
  })
  const { services, volumes } = v.parse(Compose, parse(read('compose.yaml'), { strict: true }))

  test('its commands are Baton’s own, and what they need is there', () => {
    const own = Object.values(services).filter(({ image }) => image === 'baton')
    expect(new Set(own.map(({ command }) => command[0]))).toEqual(new Set(['relay', 'runner']))
    for (const { command } of own) expect(faultsOf(command)).toEqual([])
    for (const { build, depends_on, volumes: mounts } of Object.values(services)) {
      if (build) expect(existsSync(resolve(DEPLOY, build.context, build.dockerfile))).toBe(true)
      for (const name of Object.keys(depends_on)) expect(services).toHaveProperty([name])
      for (const mount of mounts) expect(volumes).toHaveProperty([mount.split(':')[0] ?? ''])
    }
    const runners = own.filter(({ command }) => command[0] === 'runner')
    for (const { volumes: mounts } of runners)
      expect(mounts.map((mount) => mount.split(':')[1])).toEqual([DATA])
  })

  test('D1: Redis syncs every write and evicts nothing; a runner has time to let go', () => {
    expect(services['redis']?.command.join(' ')).toContain('--appendfsync always')
    expect(services['redis']?.command.join(' ')).toContain('--maxmemory-policy noeviction')
    expect(Number.parseInt(services['runner-1']?.stop_grace_period ?? '', 10)).toBeGreaterThanOrEqual(30)
  })

  test('the programs of its health checks compile, and no dollar is taken for a variable', () => {
    for (const { healthcheck } of Object.values(services)) {
      const [, command, flag, program = ''] = healthcheck.test
      if (command === 'node') {
        expect(flag).toBe('--eval')
        expect(() => new Script(program)).not.toThrow()
        for (const [name] of program.matchAll(/baton_\w+/g)) expect(isMetric(name), name).toBe(true)
      }
    }
    const dollars = read('compose.yaml').match(/\$[^$]?/g) ?? []
    expect(dollars.every((at) => at === '${')).toBe(true)
  })
})

describe('Dockerfile', () => {
  const lines = DOCKER
  const known = 'FROM WORKDIR COPY RUN USER ENV VOLUME EXPOSE STOPSIGNAL ENTRYPOINT CMD'.split(' ')

  test('it starts Baton as a user without rights', () => {
    for (const line of lines) expect(known).toContain(line.split(' ')[0])
    const entry = lines.find((line) => line.startsWith('ENTRYPOINT '))?.slice('ENTRYPOINT '.length) ?? ''
    const [, program = ''] = JSON.parse(entry) as string[]
    expect(existsSync(join(ROOT, program.replace('/app/', '')))).toBe(true)
    expect(lines.findIndex((line) => line.startsWith('USER '))).toBeLessThan(
      lines.findIndex((line) => line.startsWith('ENTRYPOINT ')),
    )
    expect(lines.filter((line) => line.startsWith('USER '))).toEqual(['USER node'])
  })

  test('its user may write where Baton keeps its data, which is a volume', () => {
    expect(lines).toContain(`VOLUME ${DATA}`)
    const made = lines.find((line) => line.startsWith('RUN ') && line.includes('install --directory')) ?? ''
    expect(made).toMatch(new RegExp(`install --directory --owner=node [^&]*${DATA}$`))
  })

  test('what it copies is there, the manifest of every workspace too', () => {
    const copies = lines.filter((line) => line.startsWith('COPY ') && !line.includes('--from'))
    const sources = copies.flatMap((line) => line.split(' ').slice(1, -1))
    for (const source of sources) expect(existsSync(join(ROOT, source))).toBe(true)
    const { workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      workspaces: string[]
    }
    for (const workspace of workspaces) expect(sources).toContain(`${workspace}/package.json`)
  })
})

describe('systemd', () => {
  const units = readdirSync(join(DEPLOY, 'systemd'))
  const sections = ['Unit', 'Service', 'Install']

  test.each(units)('%s', (name) => {
    const settings = new Map<string, string>()
    let section = ''
    for (const line of read(join('systemd', name)).split('\n')) {
      if (line === '' || line.startsWith('#')) continue
      const head = /^\[(\w+)\]$/.exec(line)?.[1]
      if (head !== undefined) section = head
      else {
        const [, key, value] = /^([A-Z]\w*)=(.*)$/.exec(line) ?? []
        expect(key, line).toBeDefined()
        expect(sections).toContain(section)
        settings.set(`${section}.${key}`, value ?? '')
      }
    }
    const [program = '', ...words] = (settings.get('Service.ExecStart') ?? '').split(' ')
    expect(existsSync(join(ROOT, program.replace('%h/baton/', '')))).toBe(true)
    expect(faultsOf(words)).toEqual([])
    // Told twice, a runner ends at once: only the program itself may be told.
    expect(settings.get('Service.KillMode')).toBe('mixed')
    expect(Number(settings.get('Service.TimeoutStopSec'))).toBeGreaterThanOrEqual(30)
    expect(settings.get('Install.WantedBy')).toBe('default.target')
  })
})

describe('launchd', () => {
  const Value = v.union([v.string(), v.array(v.string())])
  const Dict = v.looseObject({
    key: v.union([v.string(), v.array(v.string())]),
    array: v.object({ string: Value }),
  })
  const Plist = v.object({ plist: v.looseObject({ dict: Dict }) })

  test.each(readdirSync(join(DEPLOY, 'launchd')))('%s', (name) => {
    const text = read(join('launchd', name))
    expect(XMLValidator.validate(text)).toBe(true)
    const parser = new XMLParser({ ignoreDeclaration: true, parseTagValue: false })
    const { plist } = v.parse(Plist, parser.parse(text))
    const keys = [plist.dict.key].flat()
    for (const key of ['Label', 'ProgramArguments', 'KeepAlive', 'ExitTimeOut']) expect(keys).toContain(key)
    const [program = '', ...words] = [plist.dict.array.string].flat()
    expect(existsSync(join(ROOT, program.replace('/Users/YOU/baton/', '')))).toBe(true)
    expect(faultsOf(words)).toEqual([])
    expect(text).toContain(`<string>${name.replace('.plist', '')}</string>`)
  })
})

describe('docs/hosting.md', () => {
  const text = readFileSync(join(ROOT, 'docs/hosting.md'), 'utf8')

  test('the commands that it shows are Baton’s own', () => {
    const shown = Array.from(
      text.matchAll(/^(?:npx baton | +)((?:runner|relay|pair)\b.*?)(?: +#.*)?$/gm),
      ([, line = '']) => line,
    )
    expect(shown.length).toBeGreaterThanOrEqual(3)
    for (const line of shown) {
      expect(faultsOf(line.split(/\s+/))).toEqual([])
    }
  })

  test('the files and metrics that it names are there', () => {
    for (const [, path = ''] of text.matchAll(/\]\(\.\.\/([^)#]+)\)/g))
      expect(existsSync(join(ROOT, path)), path).toBe(true)
    const names = [...text.matchAll(/`(baton_\w+?)(?:_bucket)?(?:\{[^`]*\})?`/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(4)
    for (const name of names) expect(isMetric(name), name).toBe(true)
  })
})
