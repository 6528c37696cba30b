/** Coming home to a folder where something else lies in the place of a file or folder of the session. */
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
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
  SHORT,
  SID,
} from './workspace-ground.ts'

interface Case {
  what: string
  /** The person's folder. */
  person: () => string
  /** What the agent does elsewhere. */
  agent: (root: string) => void
  /** What must make way, and a file in it that is nowhere else. */
  inTheWay: string
  precious: string
}

const PLAIN = 'what nobody else has\n'

function ignoring(pattern: string, files: Record<string, string>): string {
  const person = repository({ '.gitignore': `${pattern}\n`, 'a.txt': 'a\n' })
  put(person, files)
  return person
}

const cases: Case[] = [
  {
    what: 'an ignored folder where the agent made a file',
    person: () => ignoring('data', { 'data/set.csv': PLAIN }),
    agent: (root) => {
      put(root, { data: 'one file\n' })
      git(root, 'add', '-f', 'data')
    },
    inTheWay: 'data',
    precious: 'data/set.csv',
  },
  {
    what: 'an ignored folder where the agent made a link',
    person: () => ignoring('data', { 'data/set.csv': PLAIN }),
    agent: (root) => {
      put(root, { '.gitignore': '' })
      symlinkSync('/mnt/data', join(root, 'data'))
    },
    inTheWay: 'data',
    precious: 'data/set.csv',
  },
  {
    what: 'an ignored file where the agent made a folder',
    person: () => ignoring('data', { data: PLAIN }),
    agent: (root) => {
      put(root, { 'data/deep/file.txt': 'below\n' })
      git(root, 'add', '-f', 'data/deep/file.txt')
    },
    inTheWay: 'data',
    precious: 'data',
  },
  {
    what: 'an ignored link where the agent made a folder',
    person: () => {
      const person = ignoring('data', {})
      const elsewhere = folder()
      put(elsewhere, { 'file.txt': PLAIN })
      symlinkSync(elsewhere, join(person, 'data'))
      return person
    },
    agent: (root) => {
      put(root, { 'data/file.txt': 'below\n' })
      git(root, 'add', '-f', 'data/file.txt')
    },
    inTheWay: 'data',
    precious: 'data/file.txt',
  },
  {
    what: 'an ignored file in a tracked folder that became a file',
    person: () => {
      const person = repository({ '.gitignore': '*.secret\n', 'cfg/sub/app.json': '{}\n' })
      put(person, { 'cfg/sub/my.secret': PLAIN })
      return person
    },
    agent: (root) => {
      rmSync(join(root, 'cfg'), { recursive: true })
      put(root, { cfg: 'one file now\n' })
    },
    inTheWay: 'cfg',
    precious: 'cfg/sub/my.secret',
  },
  {
    what: 'a submodule with an edit where the agent made a file',
    person: () => {
      const person = repository()
      const lib = repository({ 'lib.txt': 'lib\n' })
      git(person, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', lib, 'sub')
      git(person, 'commit', '-qm', 'sub')
      put(person, { 'sub/lib.txt': PLAIN })
      return person
    },
    agent: (root) => {
      rmSync(join(root, 'sub'), { recursive: true, force: true })
      put(root, { sub: 'vendored away\n' })
    },
    inTheWay: 'sub',
    precious: 'sub/lib.txt',
  },
  {
    what: 'a repository of its own where the agent made a file',
    person: () => {
      const person = repository()
      const inner = join(person, 'inner')
      put(inner, { 'f.txt': 'f\n' })
      git(inner, 'init', '-q')
      git(inner, 'add', '-A')
      git(inner, 'commit', '-qm', 'not pushed')
      put(inner, { '.git/precious': PLAIN })
      return person
    },
    agent: (root) => {
      rmSync(join(root, 'inner'), { recursive: true })
      put(root, { inner: 'flat\n' })
    },
    inTheWay: 'inner',
    precious: 'inner/.git/precious',
  },
  {
    what: 'what is installed in a folder without git where the agent made a link',
    person: () => {
      const person = join(folder(), 'plain')
      put(person, { 'a.txt': 'a\n', 'node_modules/p/index.js': PLAIN })
      return person
    },
    agent: (root) => symlinkSync('../shared/node_modules', join(root, 'node_modules')),
    inTheWay: 'node_modules',
    precious: 'node_modules/p/index.js',
  },
]

test.each(cases)(
  'I11 K11: $what is moved aside whole, and told',
  async ({ person, agent, inTheWay, precious }) => {
    const own = person()
    const data = folder()
    const settings = { carry: [], place: 'in-place' as const }
    const home = (await openWorkspace({ folder: own, data, sid: SID, settings })).workspace
    const courier = new Courier()
    put(own, { 'x.txt': 'x\n' })
    await courier.take(home)
    await home.close()
    const { packs } = courier
    const cloud = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint: courier.last })
    agent(cloud.root)
    await courier.take(cloud)

    const back = { data, sid: SID, packs, checkpoint: courier.last, repository: own }
    const { notices } = await restoreGitWorkspace(back)
    const place = join(data, 'kept', `${SHORT}-1`)
    expect(notices).toEqual([
      `These lay where the session has something else, and are kept with all that is in them in ${place}: ${inTheWay}.`,
    ])
    expect(readFileSync(join(place, precious), 'utf8')).toBe(PLAIN)
    expect(readdirSync(place)).toEqual([inTheWay])
    const laid = (root: string) => Object.entries(filesOf(root)).filter(([path]) => path.startsWith(inTheWay))
    expect(laid(own)).toEqual(laid(cloud.root))
  },
)

test('K11: a folder that the checkpoints hold whole is only replaced', async () => {
  const own = repository({ 'd/e/f.txt': 'f\n' })
  const data = folder()
  const settings = { carry: [], place: 'in-place' as const }
  const home = (await openWorkspace({ folder: own, data, sid: SID, settings })).workspace
  const courier = new Courier()
  await courier.take(home)
  await home.close()
  const { packs } = courier
  const cloud = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint: courier.last })
  rmSync(join(cloud.root, 'd'), { recursive: true })
  put(cloud.root, { d: 'a file\n' })
  await courier.take(cloud)
  const back = { data, sid: SID, packs, checkpoint: courier.last, repository: own }
  expect((await restoreGitWorkspace(back)).notices).toEqual([])
  expect(readFileSync(join(own, 'd'), 'utf8')).toBe('a file\n')
  expect(existsSync(join(data, 'kept'))).toBe(false)
})

test.each(['in-place', 'worktree'] as const)(
  'I11 K3: %s, an ignored .env where the agent added one is kept as a file, in no branch or commit that could be pushed',
  async (place) => {
    const own = repository({ '.gitignore': '.env\n', 'a.txt': 'a\n' })
    const data = folder()
    const settings = { carry: [], place }
    const home = (await openWorkspace({ folder: own, data, sid: SID, settings })).workspace
    put(home.root, { '.env': 'SECRET=person\n', 'x.txt': 'x\n' })
    const courier = new Courier()
    await courier.take(home)
    await home.close()
    const { packs } = courier
    const cloud = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint: courier.last })
    put(cloud.root, { '.env': 'SECRET=agent\n' })
    git(cloud.root, 'add', '-f', '.env')
    await courier.take(cloud)

    put(home.root, { 'x.txt': 'edited\n' })
    const back = { data, sid: SID, packs, checkpoint: courier.last, repository: own }
    const { kept, notices } = await restoreGitWorkspace(back)
    const folderOfKept = join(data, 'kept', `${SHORT}-1`)
    expect(readFileSync(join(home.root, '.env'), 'utf8')).toBe('SECRET=agent\n')
    expect(readFileSync(join(folderOfKept, '.env'), 'utf8')).toBe('SECRET=person\n')
    expect(notices.slice(0, 2)).toEqual([
      `Changes here that are in no checkpoint of the session are kept on branch ${kept}: x.txt.`,
      `Files here that are in no checkpoint of the session are kept in ${folderOfKept}: .env.`,
    ])
    const reachable = git(own, 'log', '--all', '--format=%H').trim().split('\n')
    const secret = git(own, 'hash-object', join(folderOfKept, '.env')).trim()
    for (const commit of reachable) expect(git(own, 'ls-tree', '-r', commit)).not.toContain(secret)
  },
)
