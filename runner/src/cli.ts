/** The `baton` command. Each subcommand is loaded when it is called. Errors are one line: what happened, what to do. */
import { enableCompileCache } from 'node:module'
import { explain, BatonError } from '@baton/shared/errors.ts'

const USAGE = `baton: prompt from your pocket; close the laptop; the agent keeps working somewhere else

  baton up [--port N] [--data DIR] [--lan] [--host H]    relay, runner and app on this machine
  baton relay [--port N] [--data DIR] [--host H]         the relay alone
  baton runner [--name N] [--pool LABEL] [--join LINK]   one more runner (also --workspace DIR, --capacity N)
  baton pair                                             a link for one more device
  baton new [--workspace DIR] [--mode ask|full] PROMPT   start a session
  baton ls | log SESSION                                 look
  baton prompt SESSION TEXT | approve SESSION | deny SESSION | stop SESSION
  baton handoff SESSION [--to RUNNER|POOL]               move it, mid-turn
  baton guest new | step | reply | fork | inspect        the pausable guest, without a relay

Most commands take --json and --data DIR. Sessions may be named by the first letters of their id.`

type Run = (args: string[]) => Promise<number>

const COMMANDS: Record<string, () => Promise<Run>> = {
  up: async () => (await import('./cli/up.ts')).up,
  relay: async () => (await import('./cli/relay.ts')).relay,
  runner: async () => (await import('./cli/runner.ts')).runner,
  pair: async () => (await import('./cli/pair.ts')).pair,
  new: async () => (await import('./cli/sessions.ts')).newSession,
  ls: async () => (await import('./cli/sessions.ts')).listSessions,
  log: async () => (await import('./cli/sessions.ts')).log,
  prompt: async () => (await import('./cli/sessions.ts')).prompt,
  approve: async () => decide(true),
  deny: async () => decide(false),
  stop: async () => (await import('./cli/sessions.ts')).stop,
  handoff: async () => (await import('./cli/sessions.ts')).handoff,
  guest: async () => (await import('./cli/guest.ts')).runGuestCommand,
}

async function decide(approved: boolean): Promise<Run> {
  const { decide: run } = await import('./cli/sessions.ts')
  return (args) => run(args, approved)
}

async function main(argv: string[]): Promise<number> {
  const [name, ...args] = argv
  if (name === undefined || name === 'help' || argv.includes('--help')) {
    process.stdout.write(`${USAGE}\n`)
    return name === undefined ? 2 : 0
  }
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (!load) throw new BatonError('usage', `There is no command ${JSON.stringify(name)}.`)
  return (await load())(args)
}

// Commands are loaded when they are called; the cache saves most of the time that this takes.
enableCompileCache()

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (process.env['BATON_DEBUG']) console.error(error)
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(asJson(error))}\n`)
  else process.stderr.write(`baton: ${inWords(error)}\n`)
  process.exitCode = 1
}
// The channel to a parent would keep this process alive.
if (process.connected) process.disconnect()

/** The phone keeps what was typed while offline; a command does not. */
function inWords(error: unknown): string {
  if (!(error instanceof BatonError) || error.code !== 'offline') return explain(error)
  return `The relay can not be reached. ${error.detail} Check that it runs (baton up) and that the network is there.`
}

/** For programs, which asked for JSON and get it also when something is wrong. */
function asJson(error: unknown): { error: { code: string; message: string; todo?: string } } {
  if (!(error instanceof BatonError)) return { error: { code: 'internal', message: explain(error) } }
  return { error: { code: error.code, message: error.message, todo: error.todo } }
}
