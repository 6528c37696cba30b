import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Opened } from '../src/workspace/attach.ts'
import { openWorkspace } from '../src/workspace/open.ts'
import { restoreWorkspace } from '../src/workspace/restore.ts'
import { packOf } from '../src/workspace/pack-file.ts'
import type { WorkspaceSettings } from '../src/workspace/settings.ts'
import { Courier, folder, put, repository, SID } from './workspace-ground.ts'

const settings = (setup: string): WorkspaceSettings => ({ place: 'worktree', carry: [], setup })
const RUN = 'echo ran >> "$PWD/../ran-$(basename "$PWD")"; echo out'

/** How often the set-up ran in a work tree: counted beside it, outside of Baton. */
const runs = (root: string): number => {
  const path = join(root, '..', `ran-${SID}`)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0
}

async function moved(setup: string): Promise<{ source: Opened; courier: Courier; person: string }> {
  const person = repository({ 'a.txt': 'a', 'package-lock.json': '{"v":1}' })
  const source = await openWorkspace({ folder: person, data: folder(), sid: SID, settings: settings(setup) })
  const courier = new Courier()
  await courier.take(source.workspace)
  return { source, courier, person }
}

test('K9: set-up runs once on each machine, and again when a lock file or the command changed', async () => {
  const { source, courier } = await moved(RUN)
  const said = await source.workspace.ready
  expect(said).toHaveLength(1)
  expect(said?.[0]).toMatch(/^Set-up on this machine: echo ran .* \(\d+\.\d s\)\.$/)
  expect(runs(source.workspace.root)).toBe(1)

  const data = folder()
  const restore = (): Promise<Opened> =>
    restoreWorkspace({ data, sid: SID, packs: courier.packs.map(packOf), checkpoint: courier.last })
  // The machine has no clone: the command came with the checkpoint.
  const { workspace } = await restore()
  expect(await workspace.ready).toHaveLength(1)
  expect(runs(workspace.root)).toBe(1)
  expect(await (await restore()).workspace.ready).toEqual([])
  put(source.workspace.root, { 'a.txt': 'changed' })
  await courier.take(source.workspace)
  expect(await (await restore()).workspace.ready).toEqual([])
  put(source.workspace.root, { 'package-lock.json': '{"v":2}' })
  await courier.take(source.workspace)
  expect(await (await restore()).workspace.ready).toHaveLength(1)
  expect(runs(workspace.root)).toBe(2)
})

test('K9: the clone of the person on this machine has the say, and only when it is theirs', async () => {
  const { courier, person } = await moved('false')
  const options = { sid: SID, packs: courier.packs.map(packOf), checkpoint: courier.last }
  const asked: string[] = []
  const mine = async (): Promise<WorkspaceSettings> => {
    asked.push('mine')
    return settings(RUN)
  }
  const home = await restoreWorkspace({ ...options, data: folder(), folder: person, settings: mine })
  expect((await home.workspace.ready)?.[0]).toContain('echo ran')
  expect(asked).toEqual(['mine'])
  const other = repository({ 'other.txt': 'o' })
  const apart = await restoreWorkspace({ ...options, data: folder(), folder: other, settings: mine })
  expect((await apart.workspace.ready)?.[0]).toContain('Set-up on this machine failed: false ended with 1')
  expect(asked).toEqual(['mine'])
})

test('K9: failure is told with the end of the output, and tried again', async () => {
  const { source, courier } = await moved('echo much; echo the reason >&2; exit 3')
  expect((await source.workspace.ready)?.[0]).toMatch(
    /ended with 3 after .* Its output ends: much\nthe reason$/,
  )
  const options = { sid: SID, data: folder(), packs: courier.packs.map(packOf), checkpoint: courier.last }
  expect(await (await restoreWorkspace(options)).workspace.ready).toHaveLength(1)
  expect(await (await restoreWorkspace(options)).workspace.ready).toHaveLength(1)
})

test('K9: closing ends it at once, and the next time it runs', async () => {
  const { source } = await moved('touch ../began; sleep 600')
  await source.workspace.close()
  expect(await source.workspace.ready).toEqual([])
})

test('K9: in place nothing is set up', async () => {
  const person = repository()
  const { workspace } = await openWorkspace({
    ...{ folder: person, data: folder(), sid: SID },
    settings: { place: 'in-place', carry: [], setup: 'touch made' },
  })
  expect(workspace.ready).toBeUndefined()
  await workspace.close()
  expect(existsSync(join(person, 'made'))).toBe(false)
})
