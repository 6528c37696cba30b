/** Commands that were consumed, read into a transcript. */
import type { ImageRef, Json } from '../guest.ts'
import type { Copied, Received } from '../journal.ts'
import type { Draft } from './model.ts'
import { modeName } from './modes.ts'

export function received(draft: Draft, body: Received, seq: number, at: number): void {
  const id = `e${seq}`
  switch (body.kind) {
    case 'start':
      draft.workspace = body.command.workspace
      // A copied history has told the rest before.
      if (body.copied) {
        delete draft.jobs
        renamePictures(draft, body.copied.blobs)
        return
      }
      draft.mode = body.command.mode
      draft.settings = body.command.settings ?? {}
      draft.access = body.start
        ? new Map(body.start.tools.map(({ name, access }) => [name, access]))
        : new Map(Object.entries(body.start_blob?.access ?? {}))
      draft.rules = body.rules ?? []
      return
    case 'prompt':
      draft.items.push({
        kind: 'prompt',
        id,
        at,
        text: body.command.text,
        command: body.id,
        device: body.device,
        ...(body.command.images?.length ? { images: body.command.images } : {}),
        ...(body.command.steer ? { waits: true } : {}),
      })
      if (body.command.steer) draft.steering = (draft.steering ?? 0) + 1
      return
    case 'stop':
      draft.items.push({ kind: 'stop', id, at, device: body.device })
      return
    case 'move':
      // To where it is already: it goes nowhere.
      if (draft.lease?.change === 'claimed' && draft.lease.holder === body.place.prefer) return
      draft.moving = { label: body.command.label, at, waits: false }
      return
    case 'decision':
      // What it decided shows in the approval's outcome; one that came too late changed nothing.
      if (body.late === undefined && body.command.always) draft.rules = [...draft.rules, body.command.always]
      return
    case 'mode':
      if (body.late !== undefined) {
        const text = `The mode was not changed: ${body.late}`
        draft.items.push({ kind: 'event', id, at, tone: 'quiet', text })
        return
      }
      draft.mode = body.command.mode
      draft.revision++
      draft.items.push({
        kind: 'event',
        id,
        at,
        tone: 'quiet',
        text: `Mode: ${modeName(body.command.mode)}.`,
      })
      return
    case 'settings': {
      draft.settings = { ...draft.settings, ...body.command.settings }
      const words = Object.entries(body.command.settings).map(([name, value]) => `${name} ${textOf(value)}`)
      draft.items.push({ kind: 'event', id, at, tone: 'quiet', text: `Set: ${words.join(', ')}.` })
      return
    }
    case 'compact':
      draft.items.push({
        ...{ kind: 'event', id, at, tone: 'quiet', text: 'Compacting was asked for.' },
        asked: 'compact',
      })
      return
    case 'document':
      // The agent answers with the event `document`, which says whether it counts.
      return
    case 'unreadable':
      draft.items.push({ kind: 'event', id, at, tone: 'quiet', text: body.why })
      return
    default:
      // A kind that is added and not shown here does not compile.
      body satisfies never
  }
}

/** Pictures of a copied history stand under the names that they had in its origin: here they are stored under others. */
function renamePictures(draft: Draft, blobs: Copied['blobs']): void {
  const here = (images: readonly ImageRef[]): ImageRef[] =>
    images.map((image) => ({ ...image, blob: blobs[image.blob] ?? image.blob }))
  draft.items = draft.items.map((item) => {
    if (item.kind === 'prompt' && item.images) return { ...item, images: here(item.images) }
    if (item.kind !== 'tool' || !item.result?.images) return item
    return { ...item, result: { ...item.result, images: here(item.result.images) } }
  })
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))
