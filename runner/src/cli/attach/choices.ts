/** What `attach` lets a person choose or read in place of the transcript. */
import { poolTag } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { MODES } from '@baton/shared/view/modes.ts'
import { isLeaving, roomWords } from '@baton/shared/view/runners.ts'
import { ago } from '@baton/shared/view/units.ts'
import { inOrder } from '../account.ts'
import { modeBody } from '../signed.ts'
import { EFFORTS } from '../table.ts'
import type { Line } from '../term/text.ts'
import type { Host } from './act.ts'
import type { Choice } from './state.ts'

export function read(host: Host, title: string, lines: (width: number) => readonly Line[]): void {
  host.state.overlay = { as: 'read', title, lines, from: 0 }
}

export function choose(host: Host, title: string, choices: readonly Choice[]): void {
  if (choices.length === 0) host.say('There is nothing to choose from.')
  else host.state.overlay = { as: 'choose', title, choices, selected: 0 }
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
  choose(
    host,
    'What may the agent do without asking?',
    MODES.map(({ mode, name, means }) => ({
      ...{ label: name, about: `${means}${mode === live.transcript.mode ? ' (now)' : ''}` },
      pick: () =>
        live.send('mode', modeBody(host.view.identity.device, live.sid, mode, live.transcript.revision)),
    })),
  )
}

export function chooseEffort(host: Host): void {
  const { live, runners } = host.state
  const models = [...new Set([...runners.values()].flatMap(({ about }) => about.models ?? []))]
  choose(host, 'Model and effort, from the next request on', [
    ...EFFORTS.map((effort) => ({
      ...{ label: `Effort ${effort}`, pick: () => live.send('settings', { settings: { effort } }) },
    })),
    ...models.map((model) => ({
      ...{ label: `Model ${model}`, pick: () => live.send('settings', { settings: { model } }) },
    })),
  ])
}
