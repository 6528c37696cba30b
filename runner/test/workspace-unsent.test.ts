/** Checkpoints that were taken and did not get into the journal, because the runner was killed or could not store them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { Checkpoints } from '../src/session/checkpoints.ts'
import type { GitWorkspace } from '../src/workspace/git-workspace.ts'
import {
  Courier,
  filesOf,
  folder,
  git,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
} from './workspace-ground.ts'

async function begun() {
  const person = repository({ 'a.txt': 'first' })
  const options = { repository: person, data: folder(), sid: SID }
  const source = await openGitWorkspace(options)
  const courier = new Courier()
  await courier.take(source)
  put(source.root, { 'a.txt': 'work', 'new.txt': 'new' })
  const back = () => restoreGitWorkspace({ ...options, packs: courier.packs, checkpoint: courier.last })
  return { person, source, courier, back }
}

/** Stores through a relay that fails. */
async function fails(source: GitWorkspace, error: BatonError): Promise<void> {
  const refuse = (): Promise<never> => Promise.reject(error)
  const blobs: BlobStore = { put: refuse, get: refuse }
  const checkpoints = new Checkpoints(blobs, SID, new Uint8Array(32), undefined)
  await expect(checkpoints.store(source)).rejects.toBe(error)
}

test('K10 I11: what only an unsent checkpoint holds is kept on a branch when an earlier one is laid out', async () => {
  const { person, source, back } = await begun()
  await source.checkpoint()
  await source.close()
  const home = await back()
  expect(home.notices[0]).toBe(
    `Changes here that are in no checkpoint of the session are kept on branch baton/kept/${SHORT}-1: a.txt, new.txt.`,
  )
  expect(Object.keys(filesOf(home.root))).toEqual(['a.txt'])
  expect(readFileSync(join(home.root, 'a.txt'), 'utf8')).toBe('first')
  expect(git(person, 'show', `baton/kept/${SHORT}-1:new.txt`)).toBe('new')
})

test('K10 I11: files that could not be stored are still there when the session goes on here', async () => {
  const { person, source, courier, back } = await begun()
  await fails(source, new BatonError('storage-limit'))
  await source.close()
  const files = filesOf(source.root)
  const home = await back()
  expect(home.notices).toEqual([])
  expect(filesOf(home.root)).toEqual(files)
  // Stored after all; from then on it is as always.
  await courier.take(home)
  await home.close()
  put(home.root, { 'mine.txt': 'mine' })
  const again = await back()
  expect(again.kept).toBe(`baton/kept/${SHORT}-1`)
  expect(filesOf(again.root)).toEqual(files)
  expect(git(person, 'show', `${again.kept}:mine.txt`)).toBe('mine')
})

test('I11: when it went on elsewhere meanwhile, they are kept on a branch', async () => {
  const { person, source, courier, back } = await begun()
  await fails(source, new BatonError('storage-limit'))
  await source.close()
  const { packs, last: checkpoint } = courier
  const away = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint })
  put(away.root, { 'a.txt': 'elsewhere' })
  await courier.take(away)
  const home = await back()
  expect(home.kept).toBe(`baton/kept/${SHORT}-1`)
  expect(readFileSync(join(home.root, 'a.txt'), 'utf8')).toBe('elsewhere')
  expect(git(person, 'show', `${home.kept}:new.txt`)).toBe('new')
})

test('I11: a lost lease holds nothing: the checkpoint of whoever has it counts', async () => {
  const { source, back } = await begun()
  await fails(source, new BatonError('lease-lost'))
  await source.close()
  const home = await back()
  expect(home.kept).toBe(`baton/kept/${SHORT}-1`)
  expect(readFileSync(join(home.root, 'a.txt'), 'utf8')).toBe('first')
})
