/** What a loss of power leaves of the records of a workspace. */
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
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

test.each([
  ['files', (root: string) => put(root, { 'mine.txt': 'mine\n' }), 'mine.txt'],
  [
    'nothing but a repository',
    (root: string) => {
      rmSync(root, { recursive: true })
      put(root, { '.git/precious': 'mine\n' })
    },
    '.git/precious',
  ],
])(
  'I11 K10: a work tree of which nothing is known any more, with %s, is moved aside and told',
  async (_, change, precious) => {
    const person = repository()
    const data = folder()
    const { workspace } = await openWorkspace({ folder: person, data, sid: SID })
    const { root } = workspace
    const courier = new Courier()
    await courier.take(workspace)
    await workspace.close()
    change(root)
    truncateSync(join(data, 'checkpoints', SID, 'place.json'), 0)
    const back = { data, sid: SID, packs: courier.packs, checkpoint: courier.last, repository: person }
    const { notices } = await restoreGitWorkspace(back)
    expect(notices).toEqual([
      `What was in ${root}, and is not known to be the session's, is kept in ${root}.kept-1.`,
    ])
    expect(readFileSync(join(`${root}.kept-1`, precious), 'utf8')).toBe('mine\n')
    expect(Object.keys(filesOf(root))).toEqual(['a.txt'])
  },
)
