/** What it costs to store the files of a session, and what then travels. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWorkspace } from '@baton/runner/workspace/open.ts'
import { tipOf, type Checkpoint, type Workspace } from '@baton/runner/workspace/workspace.ts'
import { git, seeded } from '../../repo.ts'
import { quantile, result, type BenchResult } from '../result.ts'

const CHANGED = 20
const ROUNDS = 9
const FOLDER_FILES = 20

/** A repository with one commit of `count` files of about 3 KB. */
async function makeLarge(root: string, count: number): Promise<void> {
  const random = seeded(count)
  git(root, 'init', '--quiet', '--initial-branch=main')
  // Nothing should go on in the background while it is measured.
  git(root, 'config', 'gc.auto', '0')
  git(root, 'config', 'maintenance.auto', 'false')
  for (let at = 0; at < count; at += FOLDER_FILES) {
    await mkdir(join(root, folderOf(at)), { recursive: true })
    const files = Array.from({ length: Math.min(FOLDER_FILES, count - at) }, (_, n) => at + n)
    await Promise.all(files.map((file) => writeFile(join(root, pathOf(file)), contentOf(random))))
  }
  git(root, 'add', '--all')
  git(root, 'commit', '--quiet', '--no-gpg-sign', '-m', 'Begin')
}

const folderOf = (file: number): string => `src/${Math.floor(file / 1000)}/${Math.floor(file / FOLDER_FILES)}`
const pathOf = (file: number): string => `${folderOf(file)}/file-${file}.txt`

function contentOf(random: () => number): string {
  return Array.from(
    { length: 60 },
    () => `${Math.floor(random() * 2 ** 48).toString(36)} the same words\n`,
  ).join('')
}

interface Cost {
  ms: number
  bytes: number
  checkpoint: Checkpoint
}

async function store(workspace: Workspace, since: Checkpoint | undefined): Promise<Cost> {
  const begun = performance.now()
  const checkpoint = await workspace.checkpoint()
  if (!checkpoint) throw new Error('nothing changed')
  const pack = await workspace.pack(tipOf(checkpoint), since && tipOf(since), Infinity)
  const ms = performance.now() - begun
  await pack.discard()
  return { ms, bytes: pack.bytes, checkpoint }
}

/** Checkpoints of a work tree of 10,000 and of 50,000 files in which 20 files of 3 KB changed, until commit and pack exist. */
export async function* workspaceResults(): AsyncGenerator<BenchResult> {
  for (const count of [10_000, 50_000]) {
    const place = await mkdtemp(join(tmpdir(), 'baton-bench-'))
    try {
      const [folder, data] = [join(place, 'clone'), join(place, 'data')]
      await mkdir(folder)
      await mkdir(data)
      await makeLarge(folder, count)
      const size = `${count.toLocaleString('en')} files`
      const begun = performance.now()
      const { workspace } = await openWorkspace({ folder, data, sid: 'bench-session-0001' })
      yield result(`open a work tree, ${size}`, performance.now() - begun, { unit: 'ms', samples: 1 })
      const first = await store(workspace, undefined)
      yield result(`first checkpoint with the whole history, ${size}`, first.ms, { unit: 'ms', samples: 1 })

      const random = seeded(count + 1)
      const costs: Cost[] = []
      let last = first.checkpoint
      let changed = 0
      for (let round = 0; round < ROUNDS; round++) {
        changed = 0
        for (let n = 0; n < CHANGED; n++) {
          const content = contentOf(random)
          changed += content.length
          await writeFile(join(workspace.root, pathOf(Math.floor(random() * count))), content)
        }
        const cost = await store(workspace, last)
        costs.push(cost)
        last = cost.checkpoint
      }
      const times = costs.map(({ ms }) => ms)
      const options = { samples: ROUNDS, budget: 1000, unit: 'ms' }
      yield result(`checkpoint after ${CHANGED} changes, ${size}, p50`, quantile(times, 0.5), options)
      yield result(`checkpoint after ${CHANGED} changes, ${size}, slowest`, Math.max(...times), options)
      const bytes = quantile(
        costs.map((cost) => cost.bytes / 1024),
        0.5,
      )
      yield result(`its pack, ${size}, p50`, bytes, {
        ...{ unit: 'KB', samples: ROUNDS, budget: changed / 1024 },
        versus: `${Math.round(changed / 1024)} KB changed`,
      })
      const idle = performance.now()
      if (await workspace.checkpoint()) throw new Error('nothing had changed')
      yield result(`checkpoint of no change, ${size}`, performance.now() - idle, { unit: 'ms', samples: 1 })
      await workspace.close()
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  }
}
