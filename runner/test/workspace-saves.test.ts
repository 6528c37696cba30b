/** Files that are saved while a session that comes home lays out its own. */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWorkspace } from '../src/workspace/open.ts'
import { Courier, folder, git, put, repository, restoreGitWorkspace, SHORT, SID } from './workspace-ground.ts'

/** A git that runs `before` and `after` around each laying out; `$n` counts them. */
function savingGit(before: string, after = ':'): string {
  const path = join(folder(), 'git')
  const script = [
    '#!/bin/sh',
    'case "$*" in',
    '*"read-tree -m -u"*)',
    `  echo >> ${path}.count; n=$(($(wc -l < ${path}.count)))`,
    `  ${before}`,
    '  git "$@"; code=$?',
    `  ${after}`,
    '  exit $code ;;',
    '*) exec git "$@" ;;',
    'esac',
  ]
  writeFileSync(path, `${script.join('\n')}\n`)
  chmodSync(path, 0o755)
  return path
}

/** A session that began in the person's folder, and has changed `changed` elsewhere since. */
async function away(files: Record<string, string>, changed: Record<string, string>) {
  const person = repository(files)
  const data = folder()
  const settings = { carry: [], place: 'in-place' as const }
  const { workspace } = await openWorkspace({ folder: person, data, sid: SID, settings })
  const courier = new Courier()
  await courier.take(workspace)
  await workspace.close()
  const { packs } = courier
  const cloud = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint: courier.last })
  put(cloud.root, changed)
  await courier.take(cloud)
  const back = (saving: string) =>
    restoreGitWorkspace({ data, sid: SID, packs, checkpoint: courier.last, repository: person, git: saving })
  const read = (path: string): string => readFileSync(join(person, path), 'utf8')
  return { person, data, courier, back, read }
}

test('I11 K13: a save between looking and laying out is kept and told', async () => {
  const { person, back, read } = await away({ 'a.txt': 'a\n', 'b.txt': 'b\n' }, { 'a.txt': 'theirs\n' })
  const { kept, notices } = await back(savingGit(`[ $n = 1 ] && echo saved > ${person}/a.txt`))
  expect(read('a.txt')).toBe('theirs\n')
  expect(git(person, 'show', `${kept}:a.txt`)).toBe('saved\n')
  expect(notices).toEqual([
    `Changes here that are in no checkpoint of the session are kept on branch ${kept}: a.txt.`,
    `Changed on both sides: a.txt. The session's are in place; compare with: git diff ${kept}`,
  ])
})

test('I11 K13: so is a new file where the session has one, and a save right after', async () => {
  const { person, back, read } = await away(
    { 'a.txt': 'a\n' },
    { 'a.txt': 'theirs\n', 'new/b.txt': 'theirs\n' },
  )
  const early = `[ $n = 1 ] && mkdir ${person}/new && echo made > ${person}/new/b.txt`
  const { notices } = await back(savingGit(early, `[ $n = 2 ] && echo late > ${person}/a.txt`))
  expect([read('a.txt'), read('new/b.txt')]).toEqual(['theirs\n', 'theirs\n'])
  const branches = [1, 2].map((n) => `baton/kept/${SHORT}-${n}`)
  expect(git(person, 'show', `${branches[0]}:new/b.txt`)).toBe('made\n')
  expect(git(person, 'show', `${branches[1]}:a.txt`)).toBe('late\n')
  expect(notices.join('\n')).toMatch(/-1: new\/b\.txt\.[^]*-2: a\.txt\./)
})

test('I11 K13: what is saved over and over stays as it is; all else is laid out, and the next checkpoint has both', async () => {
  const { person, back, read, courier } = await away(
    { 'a.txt': 'a\n', 'run.log': '0\n' },
    { 'a.txt': 'theirs\n', 'run.log': 'theirs\n' },
  )
  const home = await back(savingGit(`echo $n >> ${person}/run.log`))
  expect([read('a.txt'), read('run.log')]).toEqual(['theirs\n', '0\n1\n2\n3\n'])
  expect(home.notices.at(-1)).toBe(
    `Saved all the time here, or not to be written, so left as they are: run.log. The session's are in its last checkpoint: git show ${courier.last.commit.slice(0, 12)}:FILE`,
  )
  expect(git(person, 'show', `${courier.last.commit}:run.log`)).toBe('theirs\n')
  const next = await courier.take(home)
  expect(git(person, 'show', `${next.commit}:run.log`)).toBe('0\n1\n2\n3\n')
})

test('I11 K13: where ever more is saved it is refused, and all of it is there', async () => {
  const names = [1, 2, 3, 4, 5].map((n) => `f${n}.txt`)
  const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]))
  const { person, data, back, read } = await away(all('a\n'), all('theirs\n'))
  await expect(back(savingGit(`echo saved > ${person}/f$n.txt`))).rejects.toMatchObject({
    code: 'workspace-busy',
  })
  expect(names.map(read)).toEqual(names.map(() => 'saved\n'))
  expect(existsSync(join(data, 'kept'))).toBe(false)
  await back('git')
  expect(names.map(read)).toEqual(names.map(() => 'theirs\n'))
  expect(git(person, 'show', `baton/kept/${SHORT}-5:f5.txt`)).toBe('saved\n')
})
