/** `baton up`: relay, runner and app on this machine, and a link for the phone. */
import type { ChildProcess } from 'node:child_process'
import { networkInterfaces } from 'node:os'
import { Backoff } from '@baton/shared/backoff.ts'
import { loadIdentity, prepareData, newIdentity, saveRelay, type Identity } from '../daemon/identity.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { Link } from '../daemon/link.ts'
import { GitProgram } from '../workspace/git-program.ts'
import { findRepository } from '../workspace/repository.ts'
import { dataFolder, number, parseFor, quoted, servedFolder } from './args.ts'
import { BATON, child, end, message, RELAY } from './children.ts'
import { print } from './output.ts'
import { offerPairing, qrCode } from './pair.ts'
import { runnerName } from './runner-name.ts'

const PORT = 7788
const RUNNER_ENDS_MS = 12_000
const RELAY_ENDS_MS = 8_000

export async function up(args: string[]): Promise<number> {
  const { values } = parseFor('up', args)
  const port = number('--port', values.port, PORT, 0, 65_535)
  const host = values.host ?? (values.lan ? '0.0.0.0' : '127.0.0.1')
  const data = dataFolder(values.data)
  const workspace = await servedFolder(values.workspace ?? '.')
  await prepareData(data)
  const identity = (await loadIdentity(data)) ?? (await newIdentity(data))

  const parts = new Parts()
  const stopping = untilStopped(() => parts.hurry())
  const bringUp = async (): Promise<boolean> => {
    // What is wrong there they say themselves.
    const forPrograms = values.json === true ? ['--json'] : []
    const relayArgs = [
      '--host',
      host,
      '--data',
      data,
      '--hold-health',
      '--port',
      String(port),
      ...forPrograms,
    ]
    const listening = await parts.start('relay', RELAY, relayArgs, 'listening')
    if (!listening) return false
    const origin = `http://127.0.0.1:${String(listening['port'])}`
    await saveRelay(data, { origin })
    const named = values.name === undefined ? [] : ['--name', values.name]
    const runnerArgs = ['runner', '--data', data, '--workspace', workspace, ...named, ...forPrograms]
    if (!(await parts.start('runner', BATON, runnerArgs, 'serving'))) return false
    parts.tell('relay', { t: 'healthy' })
    const name = await runnerName(data, values.name)
    const again = givenFlags(values)
    await greet({ identity, origin, host, workspace, name, data: values.data, json: values.json, again })
    return true
  }
  try {
    // Whatever it waits for, it can be told to end.
    const isUp = await Promise.race([bringUp(), stopping.then(() => true)])
    if (isUp) await stopping
    return isUp ? 0 : 1
  } finally {
    await parts.end()
  }
}

/** The children of `up`, in the order of their start; one that dies is started again, ever more slowly. */
class Parts {
  readonly #parts = new Map<string, ChildProcess>()
  readonly #backoff = new Backoff({ base_ms: 500 })
  #ending = false
  /** Those that were ready once. */
  readonly #wasReady = new Set<string>()

  /** Resolves with the message that tells readiness; undefined when it ended first, having told why. */
  async start(name: string, program: string, args: string[], ready: string) {
    const running = child(program, args)
    this.#parts.set(name, running)
    running.once('exit', () => this.#again(name, program, args, ready))
    const said = await message(running, ready).catch(() => undefined)
    if (said) this.#wasReady.add(name)
    return said
  }

  tell(name: string, said: { t: string }): void {
    this.#parts.get(name)?.send(said)
  }

  /** Told again to end: the runner hears of it, too, and saves nothing more. */
  hurry(): void {
    this.#parts.get('runner')?.kill('SIGTERM')
  }

  async end(): Promise<void> {
    this.#ending = true
    const [relay, runner] = [this.#parts.get('relay'), this.#parts.get('runner')]
    if (runner) await end(runner, RUNNER_ENDS_MS)
    if (relay) await end(relay, RELAY_ENDS_MS)
  }

  /** The first start has to succeed: what is wrong then is for the person to mend, and was said. */
  #again(name: string, program: string, args: string[], ready: string): void {
    if (this.#ending || !this.#wasReady.has(name)) return
    process.stderr.write(`baton: the ${name} ended unexpectedly and is started again\n`)
    setTimeout(() => {
      if (this.#ending) return
      void this.start(name, program, args, ready).then((said) => {
        if (said && name === 'relay') this.tell('relay', { t: 'healthy' })
      })
    }, this.#backoff.next())
  }
}

interface Greeting {
  identity: Identity
  origin: string
  host: string
  workspace: string
  name: string
  /** The data folder as it was given; undefined: the default one. */
  data: string | undefined
  json: boolean | undefined
  /** What it was called with and another call has to repeat. */
  again: string
}

/** As flags that a shell takes. */
function givenFlags(values: { data?: string | undefined; port?: string | undefined }): string {
  return (['data', 'port'] as const)
    .flatMap((name) => (values[name] === undefined ? [] : [` --${name} ${quoted(values[name])}`]))
    .join('')
}

async function greet({
  identity,
  origin,
  host,
  workspace,
  name,
  data,
  json,
  again,
}: Greeting): Promise<void> {
  const link = new Link({ origin, ...identity, about: { name, kind: 'laptop' } })
  link.connection.start()
  await link.ready()
  const { port } = new URL(origin)
  const lan = host === '127.0.0.1' || host === 'localhost' ? undefined : lanAddress()
  const shown = lan === undefined ? origin : `http://${lan}:${port}`
  const pairing = await offerPairing(link, identity.account, shown)
  link.connection.close()
  if (json === true) {
    const model = process.env['ANTHROPIC_API_KEY'] ? 'anthropic' : 'rehearsal'
    print(true, { origin: shown, link: pairing, workspace, model }, '')
    return
  }
  const phone =
    lan === undefined
      ? `Reachable from this computer only. For your phone on the same network: npm start -- --lan${again}`
      : 'Scan it with your phone’s camera, on the same network.'
  const rehearsal = process.env['ANTHROPIC_API_KEY']
    ? ''
    : '\n  ANTHROPIC_API_KEY is not set: a rehearsal model plays a short scripted task.'
  process.stdout.write(`
${qrCode(pairing)}
  Baton is up.  ${shown}

  Pair a device    ${pairing}
                   Good once, for ten minutes. Another: npx baton pair${data === undefined ? '' : ` --data ${quoted(data)}`}
                   ${phone}
  Workspace        ${workspace}${await objectionToWorkspace(workspace)}
                   Another: npm start -- --workspace DIR${again}${rehearsal}

  Open the link, prompt the agent, approve what it asks for.
  A second runner  npx baton runner --name cloud-1 --pool cloud --data DIR --join LINK
  Ctrl-C ends it; sessions are kept.
`)
}

/** What keeps sessions from starting there, on a line of its own; empty when nothing does. */
async function objectionToWorkspace(folder: string): Promise<string> {
  try {
    await findRepository(new GitProgram(), folder)
    return ''
  } catch (error) {
    // A folder without git will do.
    if (error instanceof BatonError && error.code === 'workspace-not-git') return ''
    return `\n                   ${explain(error)}`
  }
}

/** This machine's first address on a local network. */
function lanAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}

function untilStopped(again: () => void): Promise<void> {
  let isTold = false
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (isTold) again()
        isTold = true
        resolve()
      })
    }
  })
}
