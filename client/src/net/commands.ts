/** What a person does, as sealed outbox items. Ids are fixed here, once (I6). */
import { sealBlob } from '@baton/shared/blobs.ts'
import type { CommandBodyOf } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import type { Mode, Rule, SessionMeta } from '@baton/shared/journal.ts'
import { newId, signDecision, signMode, type Device } from '@baton/shared/keys.ts'
import type { CommandKind, Placement } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { isTrueCall } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { titleOf } from '@baton/shared/view/sessions.ts'
import type { NewOutboxItem, OutboxShown } from '../store/outbox.ts'
import type { Photo } from '../store/photos.ts'

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

/** What a person says. `steer`: it is meant for the turn under way. */
export interface Said {
  text: string
  photos?: readonly Photo[]
  steer?: boolean
}

/** The pictures are sealed here, because the prompt names them by what is stored. */
export function prompt(
  key: Uint8Array,
  sid: string,
  { text, photos = [], steer = false }: Said,
): NewOutboxItem {
  const pictures = photos.map(({ media_type, bytes }) => ({ media_type, ...sealBlob(sid, key, bytes) }))
  const images = pictures.map(({ media_type, hash }) => ({ media_type, blob: hash }))
  const body = { text, ...(images.length > 0 && { images }), ...(steer && { steer }) }
  const item = command(key, sid, 'prompt', body, { as: 'prompt', text, ...(steer && { steer }) })
  return pictures.length > 0 ? { ...item, pictures } : item
}

export function stop(key: Uint8Array, sid: string): NewOutboxItem {
  return command(key, sid, 'stop', {}, { as: 'stop' })
}

/** `to` is plain for the relay, `label` is what people read. */
export function move(key: Uint8Array, sid: string, to: Placement, label: string): NewOutboxItem {
  return command(key, sid, 'move', { label }, { as: 'move', label }, to)
}

/**
 * `always`: calls that this rule allows are allowed from now on. `note`: what the agent is told with it. Throws BatonError `not-approved` rather than approve a call
 * other than the one shown.
 */
export function decision(
  key: Uint8Array,
  device: Device,
  sid: string,
  approval: Approval,
  approved: boolean,
  always?: Rule,
  note?: string,
): NewOutboxItem {
  if (approved && !isTrueCall(approval)) throw new BatonError('not-approved')
  const { effect, digest } = approval
  const { id, certificate } = device
  const signature = signDecision(device, { sid, effect, digest, approved, always })
  const answer = { effect, digest, approved, ...(note && { note }), ...(always && { always }) }
  const body = { ...answer, device: id, certificate, signature }
  return command(key, sid, 'decision', body, { as: 'decision', effect, approved })
}

/**
 * `revision`: how many changes the session will have had before this one. `plan`: the effect of the plan that is approved with it; the
 * change counts only while that plan waits.
 */
export function mode(
  key: Uint8Array,
  device: Device,
  sid: string,
  to: Mode,
  revision: number,
  plan?: number,
): NewOutboxItem {
  const { id, certificate } = device
  const signature = signMode(device, { sid, revision, mode: to })
  const body = { mode: to, revision, ...(plan !== undefined && { plan }), device: id, certificate, signature }
  return command(key, sid, 'mode', body, { as: 'mode', mode: to })
}

export function settings(key: Uint8Array, sid: string, changed: { [key: string]: Json }): NewOutboxItem {
  return command(key, sid, 'settings', { settings: changed }, { as: 'settings' })
}

export function compact(key: Uint8Array, sid: string): NewOutboxItem {
  return command(key, sid, 'compact', {}, { as: 'compact' })
}

/** `version`: of the value that the person saw; the agent refuses a change of an older one. */
export function document(
  key: Uint8Array,
  sid: string,
  change: { name: string; version: number; value: Json },
): NewOutboxItem {
  return command(key, sid, 'document', change, { as: 'document', name: change.name })
}

export interface NewSession extends Said {
  sid: string
  /** Device id of the runner that has the workspace. */
  runner: string
  workspace: string
  mode: Mode
}

/** A session with its first prompt: three items that go in order or wait together. */
export function newSession(
  key: Uint8Array,
  { sid, text, photos = [], runner, workspace, mode: first }: NewSession,
): NewOutboxItem[] {
  const agent = 'coder'
  const meta: SessionMeta = { title: titleOf(text) || 'About a picture', agent, mode: first, workspace }
  const sealed = sealJson(key, meta, place.meta(sid))
  return [
    {
      id: sid,
      sid,
      ask: { what: 'create', meta: sealed, place: { prefer: runner } },
      shown: { as: 'hidden' },
    },
    command(key, sid, 'start', { agent, workspace, mode: first }, { as: 'hidden' }),
    prompt(key, sid, { text, photos }),
  ]
}
