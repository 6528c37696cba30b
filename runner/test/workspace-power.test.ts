/** What a loss of power leaves of the records of a workspace. */
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWorkspace } from '../src/workspace/open.ts'
import {
  Courier,
  filesOf,
  folder,
  git,
  put,
  repository,
  restoreGitWorkspace,
  SID,
} from './workspace-ground.ts'

test.each([
  ['empty', (index: string) => truncateSync(index, 0)],
  ['cut short', (index: string) => truncateSync(index, 100)],
  ['of zeros', (index: string) => writeFileSync(index, Buffer.alloc(readFileSync(index).length))],
])('I11 K15: an index that is %s is listed again, and what is here is as it was', async (_, damage) => {
  const person = repository({ '.gitignore': 'forced.txt\n', 'a.txt': 'a\n' })
  const data = folder()
  const { workspace } = await openWorkspace({ folder: person, data, sid: SID })
  const { root } = workspace
  const courier = new Courier()
  put(root, { 'agent.txt': 'agent\n', 'forced.txt': 'forced\n' })
  git(root, 'add', '-f', 'forced.txt')
  await courier.take(workspace)
  await workspace.close()
  const files = filesOf(root)
  put(root, { 'mine.txt': 'mine\n' })
  damage(join(data, 'checkpoints', SID, 'index'))
  const back = { data, sid: SID, packs: courier.packs, checkpoint: courier.last, repository: person }
  const home = await restoreGitWorkspace(back)
  expect(filesOf(root)).toEqual(files)
  expect(git(person, 'show', `${home.kept}:mine.txt`)).toBe('mine\n')
  expect(await home.checkpoint()).toBeUndefined()
})
