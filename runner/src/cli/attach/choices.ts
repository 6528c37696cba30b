/** What `attach` lets a person choose or read in place of the transcript. */
import type { Mode } from '@baton/shared/guest.ts'
import { poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { MODES, modeName } from '@baton/shared/view/modes.ts'
import { isLeaving, roomWords } from '@baton/shared/view/runners.ts'
import { ago } from '@baton/shared/view/units.ts'
import { inOrder } from '../account.ts'
import { modeBody } from '../signed.ts'
import { EFFORTS } from '../table.ts'
import type { Line } from '../term/text.ts'
import type { Host } from './host.ts'
import type { Choice } from './state.ts'

export function read(host: Host, title: string, lines: (width: number) => readonly Line[]): void {
  host.state.overlay = { as: 'read', title, lines, from: 0 }
}

export function choose(host: Host, title: string, choices: readonly Choice[]): void {
  if (choices.length === 0) host.say('There is nothing to choose from.')
  else {
    const selected = Math.max(
      0,
      choices.findIndex(({ isNow }) => isNow),
    )
    host.state.overlay = { as: 'choose', title, choices, selected }
  }
}

export function chooseRunner(host: Host): void {
  const { live, sessions, runners } = host.state
  const holder = sessions.get(live.sid)?.holder
  const move = (label: string, where: Placement) => (): void => {
    live.send('move', { label }, {}, where)
    host.say(`Moving to ${label}.`)
  }
  const online = [...runners.values()].filter((runner) => runner.online)
  const others = online
    .filter(({ device }) => device !== holder)
    .toSorted((a, b) => Number(isLeaving(a)) - Number(isLeaving(b)))
  const pools = [...new Set(online.flatMap(({ about }) => about.pools))]
  choose(host, 'Where should it run?', [
    ...others.map((runner) => ({
      label: runner.about.name,
      about: `${runner.about.platform} · ${isLeaving(runner) ? 'leaving' : `holds ${roomWords(runner)}`}`,
      pick: move(runner.about.name, { prefer: runner.device }),
    })),
    ...pools.map((pool) => ({
      ...{ label: pool, about: 'pool' },
      pick: move(pool, { pool: poolTag(host.view.identity.account, pool) }),
    })),
  ])
}

export function chooseSession(host: Host): void {
  const { live, sessions } = host.state
  const others = inOrder([...sessions.values()]).filter(({ sid }) => sid !== live.sid)
  choose(
    host,
    'Which session?',
    others.map(({ sid, status, named, changed_at }) => ({
      ...{ label: named.title, about: `${status} · ${ago(changed_at, Date.now())}` },
      pick: () => host.switchTo(sid),
    })),
  )
}

export function chooseMode(host: Host): void {
  const { live } = host.state
  const { mode: now, revision } = live.transcript
  const change = (mode: Mode) => (): void => {
    live.send('mode', modeBody(host.view.identity.device, live.sid, mode, revision))
    host.say(`Mode: ${modeName(mode)}, as soon as the session takes it.`)
  }
  // What can't be taken back is asked about.
  const sure = (): void =>
    choose(host, 'Full access: it changes and runs everything without asking. Are you sure?', [
      { label: `No${now === undefined ? '' : `, stay with: ${modeName(now)}`}`, pick: () => undefined },
      { label: 'Yes, full access', pick: change('full') },
    ])
  choose(
    host,
    'What may the agent do without asking?',
    MODES.map(({ mode, name, means }) => ({
      ...{ label: name, about: means, isNow: mode === now },
      pick: mode === 'full' && now !== 'full' ? sure : change(mode),
    })),
  )
}

export function chooseEffort(host: Host): void {
  const { live, runners, sessions } = host.state
  const { model: given, effort: set } = live.transcript.settings
  const holder = runners.get(sessions.get(live.sid)?.holder ?? '')
  const present = typeof given === 'string' ? given : holder?.about.models?.[0]
  const offered = [...runners.values()].flatMap(({ about }) => about.models ?? [])
  const models = [...new Set([...(present === undefined ? [] : [present]), ...offered])]
  choose(host, 'Model and effort, from the next request on', [
    ...models.map((model) => ({
      ...{ label: `Model ${model}`, isNow: model === present },
      pick: () => live.send('settings', { settings: { model } }),
    })),
    ...EFFORTS.map((effort) => ({
      ...{ label: `Effort ${effort}`, isNow: effort === set },
      pick: () => live.send('settings', { settings: { effort } }),
    })),
  ])
}
