/** A machine's identity: account and device keys in a file that only its owner can read, and the relay that it belongs to. */
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import { DeviceAbout } from '@baton/shared/journal.ts'
import {
  identityFromJson,
  identityToJson,
  newAccount,
  newDevice,
  type Account,
  type Device,
} from '@baton/shared/keys.ts'
import { replaceWhole } from '../files/replace.ts'
import { systemWords } from '../files/words.ts'

export interface Identity {
  account: Account
  device: Device
}

/** Makes sure that the data folder exists, is ours and can be written. Throws BatonError `data-folder`, `disk-full`. */
export async function prepareData(data: string): Promise<void> {
  try {
    await mkdir(data, { recursive: true, mode: 0o700 })
    await replace(join(data, '.writable'), '')
    await rm(join(data, '.writable'))
  } catch (cause) {
    throw folderError(data, cause)
  }
}

/** Undefined when this machine has no identity yet. Throws BatonError `data-folder`. */
export async function loadIdentity(data: string): Promise<Identity | undefined> {
  const path = join(data, 'identity.json')
  const text = await readOptional(path)
  try {
    return text === undefined ? undefined : identityFromJson(text)
  } catch (cause) {
    const todo = 'Put back a copy of it. Without one, move it away and join again: baton runner --join LINK'
    throw new BatonError('data-folder', `(${path}: the identity file is damaged)`, { cause, todo })
  }
}

/** Throws BatonError `data-folder`, `disk-full`. */
export async function saveIdentity(data: string, { account, device }: Identity): Promise<void> {
  await replace(join(data, 'identity.json'), `${identityToJson(account, device)}\n`)
}

/** Makes an account whose first device is this machine, and saves it. */
export async function newIdentity(data: string): Promise<Identity> {
  const account = newAccount()
  const identity = { account, device: newDevice(account) }
  await saveIdentity(data, identity)
  return identity
}

const RelayFile = v.object({
  origin: v.pipe(v.string(), v.regex(/^https?:/), v.url()),
  about: v.optional(DeviceAbout),
})
/** Where this machine's account is served, and how this device is called there. */
export type RelayFile = v.InferOutput<typeof RelayFile>

/** Undefined when this machine belongs to no relay yet. Throws BatonError `data-folder`. */
export async function loadRelay(data: string): Promise<RelayFile | undefined> {
  const path = join(data, 'relay.json')
  const text = await readOptional(path)
  if (text === undefined) return undefined
  try {
    return v.parse(RelayFile, JSON.parse(text))
  } catch (cause) {
    const todo = 'It is written anew by baton up, and by joining again: baton runner --join LINK'
    throw new BatonError('data-folder', `(${path} is damaged)`, { cause, todo })
  }
}

/** Saves what is given and keeps the rest. Throws BatonError `data-folder`, `disk-full`. */
export async function saveRelay(data: string, relay: RelayFile): Promise<void> {
  // What is damaged is mended by it.
  const before = await loadRelay(data).catch(() => undefined)
  await replace(join(data, 'relay.json'), `${JSON.stringify({ ...before, ...relay })}\n`)
}

async function readOptional(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw folderError(path, cause)
  }
}

async function replace(path: string, text: string): Promise<void> {
  try {
    await replaceWhole(path, text)
  } catch (cause) {
    throw folderError(path, cause)
  }
}

function folderError(path: string, cause: unknown): BatonError {
  if (cause instanceof BatonError) return cause
  return new BatonError('data-folder', `(${path}: ${systemWords(cause)})`, { cause })
}
