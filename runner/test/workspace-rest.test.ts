/** The person works on in their own folder while the session that works there rests. */
import { existsSync, writeFileSync } from 'node:fs'
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
  status,
} from './workspace-ground.ts'

function plain(): string {
  const path = join(folder(), 'papers')
  put(path, { 'a.txt': 'a\n' })
  return path
}

async function rested(person: string) {
  const data = folder()
  const settings = { carry: [], place: 'in-place' as const }
  const { workspace } = await openWorkspace({ folder: person, data, sid: SID, settings })
  const courier = new Courier()
  put(person, { 'agent.txt': 'agent\n' })
  await courier.take(workspace)
  await workspace.close()
  const back = () =>
    restoreGitWorkspace({
      data,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
      repository: person,
    })
  return { data, courier, back }
}

test('I11 K12: in a repository, what the person edits, adds and commits meanwhile is what the session goes on with', async () => {
  const person = repository({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  const { data, courier, back } = await rested(person)
  put(person, { 'a.txt': 'edited\n', 'mine.txt': 'new\n' })
  git(person, 'add', 'mine.txt')
  git(person, 'commit', '-qm', 'by the person')
  put(person, { 'b.txt': 'staged\n' })
  git(person, 'add', 'b.txt')
  const [files, state, refs] = [filesOf(person), status(person), git(person, 'for-each-ref', 'refs/heads')]
  const home = await back()
  expect(home.notices).toEqual([
    `Changed in ${person} since the session was last at work there, and left as they are: a.txt, b.txt, mine.txt.`,
    `${person} is at another commit now: ${git(person, 'rev-parse', 'HEAD').slice(0, 12)}.`,
  ])
  expect([filesOf(person), status(person), git(person, 'for-each-ref', 'refs/heads')]).toEqual([
    files,
    state,
    refs,
  ])
  expect(existsSync(join(data, 'kept'))).toBe(false)

  await courier.take(home)
  await home.close()
  const { packs, last: checkpoint } = courier
  const away = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint })
  expect(filesOf(away.root)).toEqual(files)
  expect(status(away.root)).toBe(state)
  expect((await back()).notices).toEqual([])
})

test('I11 K12: in a folder without git, too, deletions included', async () => {
  const person = plain()
  const { data, courier, back } = await rested(person)
  put(person, { 'a.txt': 'edited\n', 'sub/mine.txt': 'new\n' })
  const files = filesOf(person)
  const home = await back()
  expect(home.notices).toEqual([
    `Changed in ${person} since the session was last at work there, and left as they are: a.txt, sub/mine.txt.`,
  ])
  expect(filesOf(person)).toEqual(files)
  expect(existsSync(join(data, 'kept'))).toBe(false)
  await courier.take(home)
})

test('K12: a branch that the person went to is told, and stays', async () => {
  const person = repository()
  const { back } = await rested(person)
  git(person, 'switch', '-qc', 'topic')
  expect((await back()).notices).toEqual([`${person} is on branch topic now; it was on branch main.`])
  expect(git(person, 'branch', '--show-current')).toBe('topic\n')
})

test('I11 K12: after a runner that was killed the checkpoint counts: what is not in it is kept', async () => {
  const person = repository()
  const { back } = await rested(person)
  const note = join(person, '.git/baton-session.json')
  writeFileSync(note, JSON.stringify({ sid: SID, pid: 4_000_000, open: true }))
  put(person, { 'half.txt': 'half a file' })
  const home = await back()
  expect(git(person, 'show', `${home.kept}:half.txt`)).toBe('half a file')
  expect(Object.keys(filesOf(person))).toEqual(['a.txt', 'agent.txt'])
})
