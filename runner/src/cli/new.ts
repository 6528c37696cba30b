/** `baton new`: starts a session. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import { Mode } from '@baton/shared/journal.ts'
import { newId, poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { titleOf } from '@baton/shared/view/sessions.ts'
import * as v from 'valibot'
import { withAccount, type AccountView, type NamedRunner } from './account.ts'
import { chooseAgent } from './agent.ts'
import { parseFor, quoted } from './args.ts'
import { doubtsOf, tellDoubts } from './model-doubt.ts'
import { nearestFirst } from './nearest.ts'
import { print } from './output.ts'
import { meant } from '../similar.ts'
import { untilStarted } from './started.ts'
import { clean } from './term/text.ts'

const CLOUD = 'cloud'
/** Whoever waits wants to know what is wrong at the start; a runner that has no room may take long. */
const START_MS = 30_000
/** Workspaces that are no folder of any machine. */
const NO_FOLDER = ['virtual', 'scratch']

export async function newSession(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('new', args)
  const prompt = positionals.join(' ')
  if (prompt.trim() === '') throw new BatonError('usage', 'The prompt is empty.')
  const given = values.workspace ?? '.'
  const folder = NO_FOLDER.includes(given) ? given : resolve(given)
  const mode = v.parse(Mode, values.mode ?? 'ask')
  const settings: Record<string, Json> = {
    ...(values.model === undefined ? {} : { model: values.model }),
    ...(values.effort === undefined ? {} : { effort: values.effort }),
    ...(values['in-place'] === true ? { place: 'in-place' } : {}),
  }
  // Before a session is made: most mistakes are in the agent.
  const agent = await chooseAgent(values.agent ?? 'coder')
  return withAccount(values.data, async (view) => {
    const { runners } = await view.list()
    const workspace = NO_FOLDER.includes(folder) ? folder : servedAround(folder, runners)
    const { runner, where } = placeFor(view, runners, {
      workspace,
      place: values.place ?? 'laptop',
      on: values.on,
    })
    const sid = newId()
    const title = titleOf(prompt)
    await view.create(sid, { title, agent: agent.name, mode, workspace }, where)
    const start = {
      agent: agent.name,
      workspace,
      mode,
      ...(Object.keys(settings).length === 0 ? {} : { settings }),
    }
    const bundle = agent.bundle && (await view.link.blobs.put(sid, view.keyOf(sid), agent.bundle))
    await view.command(sid, 'start', { ...start, ...(bundle === undefined ? {} : { bundle }) })
    // A start that failed at once takes no prompt; why it failed is told below.
    await view.command(sid, 'prompt', { text: prompt }).catch((error: unknown) => {
      if (!(error instanceof BatonError) || error.code !== 'session-ended') throw error
    })
    const { name } = runner.about
    const warnings = doubtsOf(values.model, runners)
    const around = workspace === folder ? '' : ` (in ${workspace})`
    // Whoever stops waiting knows which it is.
    if (values.json !== true) {
      print(false, null, clean(`${sid}  on ${name}: ${title}${around}`))
      tellDoubts(warnings, sid)
    }
    const started = await untilStarted(view, sid, START_MS)
    if (values.json === true) print(true, { sid, runner: name, started, ...warnings }, '')
    else if (!started) print(false, null, `It waits until ${clean(name)} has room for it. See: baton ls`)
    return 0
  })
}

/** The folder itself, or the nearest one around it, no farther than its repository, that a runner serves. */
function servedAround(folder: string, runners: readonly NamedRunner[]): string {
  const served = new Set(
    runners.flatMap(({ online, about }) => (online ? about.workspaces.map(({ path }) => path) : [])),
  )
  for (let at = folder; ; at = dirname(at)) {
    if (served.has(at)) return at
    if (at === dirname(at) || existsSync(join(at, '.git'))) return folder
  }
}

interface Wanted {
  workspace: string
  place: string
  on: string | undefined
}

/** Where it begins, and where it may go. Throws BatonError `no-runner` when nobody can take it. */
function placeFor(
  view: AccountView,
  runners: readonly NamedRunner[],
  { workspace, place, on }: Wanted,
): { runner: NamedRunner; where: Placement } {
  const online = nearestFirst(runners, view.identity.device.id)
  const serves = ({ about }: NamedRunner): boolean =>
    NO_FOLDER.includes(workspace) || about.workspaces.some(({ path }) => path === workspace)
  if (place === 'cloud') {
    const pool = on ?? CLOUD
    const members = online.filter(({ about }) => about.pools.includes(pool))
    const runner = members.find(serves)
    if (runner)
      return {
        runner,
        where: { prefer: runner.device, pool: poolTag(view.identity.account, pool), pin: true },
      }
    const why = members.length === 0 ? 'No runner of it is online' : `None of its runners serves ${workspace}`
    throw new BatonError('no-runner', `The pool ${pool} can not take it. ${why}.`)
  }
  const runner = runnerFor(online, on, workspace, serves)
  return { runner, where: { prefer: runner.device, ...(place === 'pinned' ? { pin: true } : {}) } }
}

function runnerFor(
  online: readonly NamedRunner[],
  name: string | undefined,
  workspace: string,
  serves: (runner: NamedRunner) => boolean,
): NamedRunner {
  const named = online.filter(({ about }) => name === undefined || about.name === name)
  const found = named.find(serves)
  if (found) return found
  if (name !== undefined && named.length === 0) {
    const names = online.map(({ about }) => about.name)
    const known = names.length === 0 ? 'None is.' : `Online: ${names.join(', ')}.`
    throw new BatonError('no-runner', `No runner named ${name} is online. ${known}${meant(name, names)}`)
  }
  const folders = named.flatMap(({ about }) => about.workspaces.map(({ path }) => path))
  const served = folders.length === 0 ? 'None serves a folder.' : `Served: ${folders.join(', ')}.`
  const who = name === undefined ? 'None that is online' : `No runner named ${name}`
  const todo = `Start one with --workspace ${quoted(workspace)}, or again the one that runs there; or see: baton runners`
  throw new BatonError('no-runner', `${who} serves ${workspace}. ${served}`, { todo })
}
