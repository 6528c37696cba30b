/** What a person does, as sealed outbox items. Ids are fixed here, once (I6). */
import type { Mode, SessionMeta } from '@baton/shared/journal.ts'
import { newId, signDecision, type Device } from '@baton/shared/keys.ts'
import type { CommandKind, Placement } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import type { CommandBodyOf } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { titleOf } from '@baton/shared/view/sessions.ts'
import { isTrueCall } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { NewOutboxItem, OutboxShown } from '../store/outbox.ts'

function command<K extends CommandKind>(
  key: Uint8Array,
  sid: string,
  kind: K,
  body: CommandBodyOf<K>,
  shown: OutboxShown,
  to?: Placement,
): NewOutboxItem {
  const id = newId()
  const sealed = sealJson(key, body, place.command(sid, kind, id))
  return { id, sid, ask: { what: 'command', kind, body: sealed, ...(to ? { place: to } : {}) }, shown }
}

export function prompt(key: Uint8Array, sid: string, text: string): NewOutboxItem {
  return command(key, sid, 'prompt', { text }, { as: 'prompt', text })
}

export function stop(key: Uint8Array, sid: string): NewOutboxItem {
  return command(key, sid, 'stop', {}, { as: 'stop' })
}

/** `to` is plain for the relay, `label` is what people read. */
export function move(key: Uint8Array, sid: string, to: Placement, label: string): NewOutboxItem {
  return command(key, sid, 'move', { label }, { as: 'move', label }, to)
}

/** Throws BatonError `not-approved` rather than approve a call other than the one shown. */
export function decision(
  key: Uint8Array,
  device: Device,
  sid: string,
  approval: Approval,
  approved: boolean,
): NewOutboxItem {
  if (approved && !isTrueCall(approval)) throw new BatonError('not-approved')
  const { effect, digest } = approval
  const { id, certificate } = device
  const signature = signDecision(device, { sid, effect, digest, approved })
  const body = { effect, digest, approved, device: id, certificate, signature }
  return command(key, sid, 'decision', body, { as: 'decision', effect, approved })
}

export interface NewSession {
  sid: string
  text: string
  /** Device id of the runner that has the workspace. */
  runner: string
  workspace: string
  mode: Mode
}

/** A session with its first prompt: three items that go in order or wait together. */
export function newSession(
  key: Uint8Array,
  { sid, text, runner, workspace, mode }: NewSession,
): NewOutboxItem[] {
  const agent = 'coder'
  const meta: SessionMeta = { title: titleOf(text), agent, mode, workspace }
  const sealed = sealJson(key, meta, place.meta(sid))
  return [
    {
      id: sid,
      sid,
      ask: { what: 'create', meta: sealed, place: { prefer: runner } },
      shown: { as: 'hidden' },
    },
    command(key, sid, 'start', { agent, workspace, mode }, { as: 'hidden' }),
    prompt(key, sid, text),
  ]
}
