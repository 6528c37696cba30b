/** Commands that look at sessions and steer them: new, ls, prompt, approve, deny, stop, handoff, log. */
import { resolve } from 'node:path'
import { callDigest } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { Mode } from '@baton/shared/journal.ts'
import { newId, poolTag, signDecision } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { emptyState, fold } from '../session/state.ts'
import { withAccount, type AccountView, type NamedRunner } from './account.ts'
import { DATA, JSON_OUT, parse } from './args.ts'
import { logText } from './log.ts'
import { print, table } from './output.ts'

const SHORT = 8

export async function newSession(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, {
    ...DATA,
    ...JSON_OUT,
    agent: { type: 'string' },
    workspace: { type: 'string' },
    mode: { type: 'string' },
    on: { type: 'string' },
  })
  const mode = Mode.options.find((option) => option === (values.mode ?? 'ask'))
  if (!mode) throw new BatonError('usage', `--mode is one of: ${Mode.options.join(', ')}.`)
  const prompt = positionals.join(' ')
  if (prompt.trim() === '') throw new BatonError('usage', 'baton new [--workspace DIR] PROMPT')
  return withAccount(values.data, async (view) => {
    const { runners } = await view.list()
    const workspace = resolve(values.workspace ?? '.')
    const runner = runnerFor(runners, values.on, workspace)
    const agent = values.agent ?? 'coder'
    const sid = newId()
    const title = prompt.trim().split('\n')[0]?.slice(0, 80) ?? ''
    await view.create(sid, { title, agent, mode, workspace }, { prefer: runner.device })
    await view.command(sid, 'start', { agent, workspace, mode })
    await view.command(sid, 'prompt', { text: prompt })
    print(values.json, { sid }, `${sid}  on ${runner.about.name}: ${title}`)
    return 0
  })
}

function runnerFor(runners: NamedRunner[], name: string | undefined, workspace: string): NamedRunner {
  const online = runners.filter((runner) => runner.online)
  const found = online.find(({ about }) =>
    name === undefined ? about.workspaces.some(({ path }) => path === workspace) : about.name === name,
  )
  if (found) return found
  if (name !== undefined) throw new BatonError('usage', `No runner named ${name} is online.`)
  const start = `Start one: npx baton runner --workspace ${workspace}`
  throw new BatonError('usage', `No runner that is online serves ${workspace}. ${start}`)
}

export async function listSessions(args: string[]): Promise<number> {
  const { values } = parse(args, { ...DATA, ...JSON_OUT })
  return withAccount(values.data, async (view) => {
    const { sessions, runners } = await view.list()
    const names = new Map(runners.map((runner) => [runner.device, runner.about.name]))
    const rows = sessions.map(({ sid, status, holder, seq, pending, named, changed_at }) => ({
      ...{ sid, status, seq, pending, title: named.title, changed_at },
      runner: holder === undefined ? null : (names.get(holder) ?? holder.slice(0, SHORT)),
    }))
    const lines = rows.map((row) => [row.sid.slice(0, SHORT), row.status, row.runner ?? 'parked', row.title])
    print(values.json, rows, table(['session', 'status', 'runner', 'about'], lines))
    return 0
  })
}

export async function prompt(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { ...DATA, ...JSON_OUT, id: { type: 'string' } })
  const [session, ...words] = positionals
  const text = words.join(' ')
  if (text === '') throw new BatonError('usage', 'baton prompt SESSION TEXT')
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(session)
    const id = await view.command(sid, 'prompt', { text }, values.id === undefined ? {} : { id: values.id })
    print(values.json, { sid, id }, 'Sent.')
    return 0
  })
}

/** Decides about everything that the session waits for. */
export async function decide(args: string[], approved: boolean): Promise<number> {
  const { values, positionals } = parse(args, { ...DATA, ...JSON_OUT, note: { type: 'string' } })
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const calls = await pendingApprovals(view, sid)
    for (const { effect, digest, name, input } of calls) {
      // Signed is only what was shown.
      if (digest !== callDigest(name, input))
        throw new BatonError('bad-input', `(effect ${effect}: the digest is of another call)`)
      const { device } = view.identity
      const signature = signDecision(device, { sid, effect, digest, approved })
      const note = values.note === undefined ? {} : { note: values.note }
      const { id, certificate } = device
      await view.command(sid, 'decision', {
        effect,
        digest,
        approved,
        device: id,
        certificate,
        signature,
        ...note,
      })
    }
    const verb = approved ? 'Approved' : 'Denied'
    const text = calls.map(({ name, input }) => `${verb}: ${name} ${JSON.stringify(input)}`).join('\n')
    print(values.json, calls, text || 'Nothing waits for a decision.')
    return 0
  })
}

async function pendingApprovals(view: AccountView, sid: string) {
  const state = emptyState()
  for await (const entry of view.entries(sid)) fold(state, entry)
  return Array.from(state.open.values()).flatMap(({ intent }) =>
    intent.approve ? [{ effect: intent.effect, ...intent.approve }] : [],
  )
}

export async function stop(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { ...DATA, ...JSON_OUT })
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const id = await view.command(sid, 'stop', {})
    print(values.json, { sid, id }, 'Stopping.')
    return 0
  })
}

/** Moves a session to another runner, by name or pool; without --to, to any other that is online. */
export async function handoff(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { ...DATA, ...JSON_OUT, to: { type: 'string' } })
  return withAccount(values.data, async (view) => {
    const { sid, holder } = await view.find(positionals[0])
    const { runners } = await view.list()
    const { where, label } = target(view, runners, values.to, holder)
    if (where.prefer !== undefined && where.prefer === holder) {
      print(values.json, { sid, to: label }, `It is on ${label} already.`)
      return 0
    }
    await view.command(sid, 'move', { label }, { place: where })
    print(values.json, { sid, to: label }, `Moving to ${label}.`)
    return 0
  })
}

function target(
  view: AccountView,
  runners: NamedRunner[],
  to: string | undefined,
  holder: string | undefined,
) {
  const others = runners.filter((runner) => runner.online && runner.device !== holder)
  const named = runners.filter(({ about }) => about.name === to)
  const newest = named.toSorted((a, b) => Number(b.online) - Number(a.online) || b.since - a.since)[0]
  const runner = to === undefined ? others[0] : newest
  if (runner) return { where: { prefer: runner.device } satisfies Placement, label: runner.about.name }
  if (to === undefined) throw new BatonError('usage', 'No other runner is online.')
  if (!runners.some(({ about }) => about.pools.includes(to))) {
    const known = runners.map(({ about }) => about.name).join(', ')
    throw new BatonError('usage', `There is no runner or pool ${to}; runners: ${known}.`)
  }
  return { where: { pool: poolTag(view.identity.account, to) } satisfies Placement, label: to }
}

export async function log(args: string[]): Promise<number> {
  const { values, positionals } = parse(args, { ...DATA, ...JSON_OUT, entries: { type: 'boolean' } })
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const entries = await collect(view.entries(sid))
    const items = values.entries ? entries : transcriptOf(entries)
    print(values.json, items, logText(entries))
    return 0
  })
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
