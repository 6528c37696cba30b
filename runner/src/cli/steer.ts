/** Commands that steer a session: prompt, stop, mode, set, compact, docs. */
import { text as readAll } from 'node:stream/consumers'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import { Mode } from '@baton/shared/journal.ts'
import { Id } from '@baton/shared/protocol.ts'
import * as v from 'valibot'
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import { doubtsOf, tellDoubts } from './model-doubt.ts'
import { print } from './output.ts'
import { modeBody } from './signed.ts'
import { meant } from '../similar.ts'
import { clean } from './term/text.ts'

export async function prompt(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('prompt', args)
  const [session, ...words] = positionals
  const text = words.join(' ')
  if (text.trim() === '') throw new BatonError('usage', 'The prompt is empty.')
  if (values.id !== undefined && !v.is(Id, values.id))
    throw new BatonError('usage', '--id takes 8 to 64 letters, digits, - and _.')
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(session)
    const body = { text, ...(values.steer === true ? { steer: true } : {}) }
    const id = await view.command(sid, 'prompt', body, values.id === undefined ? {} : { id: values.id })
    print(values.json, { sid, id }, 'Sent.')
    return 0
  })
}

export async function stop(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('stop', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const id = await view.command(sid, 'stop', {})
    print(values.json, { sid, id }, 'Stopping.')
    return 0
  })
}

export async function compact(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('compact', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const id = await view.command(sid, 'compact', {})
    print(values.json, { sid, id }, 'The conversation is compacted at the next step.')
    return 0
  })
}

export async function mode(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('mode', args)
  const [session, wanted] = positionals
  return withAccount(values.data, async (view) => {
    const { sid, named } = await view.find(session)
    const transcript = await view.transcript(sid)
    if (wanted === undefined) {
      const present = transcript.mode ?? named.mode
      print(values.json, { sid, mode: present }, present)
      return 0
    }
    const next = v.parse(Mode, wanted)
    const body = modeBody(view.identity.device, sid, next, transcript.revision)
    const id = await view.command(sid, 'mode', body)
    print(values.json, { sid, id, mode: next }, `Mode ${next}, as soon as the session takes it.`)
    return 0
  })
}

export async function set(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('set', args)
  const { model, effort } = values
  if (model === undefined && effort === undefined) throw new BatonError('usage', 'Give --model or --effort.')
  const settings = {
    ...(model === undefined ? {} : { model }),
    ...(effort === undefined ? {} : { effort }),
  }
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const warnings = model === undefined ? {} : doubtsOf(model, (await view.list()).runners)
    const id = await view.command(sid, 'settings', { settings })
    print(values.json, { sid, id, settings, ...warnings }, 'Set, from the next request on.')
    if (values.json !== true) tellDoubts(warnings, sid)
    return 0
  })
}

export async function docs(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('docs', args)
  const [session, name] = positionals
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(session)
    const { documents } = await view.transcript(sid)
    if (name === undefined) {
      if (values.set !== undefined) throw new BatonError('usage', 'Say which document --set changes.')
      const all = [...documents.values()].map(({ name: title, version, value }) => ({
        name: title,
        version,
        value,
      }))
      const text = all.map((document) => `${document.name}  version ${document.version}`).join('\n')
      print(values.json, all, clean(text) || 'This session has no documents.')
      return 0
    }
    const document = documents.get(name)
    if (!document) {
      const names = [...documents.keys()]
      const known = names.length === 0 ? 'It has none.' : `It has: ${names.join(', ')}.`
      throw new BatonError('no-document', `(${JSON.stringify(name)}) ${known}${meant(name, names)}`)
    }
    const { version, value } = document
    if (values.set === undefined) {
      print(values.json, { name, version, value }, clean(JSON.stringify(value, null, 2)))
      return 0
    }
    const changed = jsonOf(values.set === '-' ? await readAll(process.stdin) : values.set)
    const id = await view.command(sid, 'document', { name, version, value: changed })
    print(values.json, { sid, id, name, version }, 'Sent; the agent checks it and answers in the transcript.')
    return 0
  })
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : ''
    throw new BatonError('usage', `--set takes JSON: ${why}.`, { cause })
  }
}
