/** Makes a fresh folder ready for work by the person's `setup` command; not again until it or a lock file changed. */
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { explain } from '@baton/shared/errors.ts'
import { commandEnvironment } from '../tools/environment.ts'
import { runGroup } from '../tools/process-group.ts'
import type { Surroundings } from '../tools/stay.ts'

/** Files that say exactly what is to be installed. */
const LOCK_FILES = [
  ...[
    'package-lock.json',
    'npm-shrinkwrap.json',
    'yarn.lock',
    'pnpm-lock.yaml',
    'bun.lock',
    'bun.lockb',
    'deno.lock',
  ],
  ...['requirements.txt', 'poetry.lock', 'uv.lock', 'Pipfile.lock', 'pdm.lock', 'environment.yml'],
  ...['Cargo.lock', 'go.sum', 'Gemfile.lock', 'composer.lock', 'mix.lock', 'flake.lock', 'gradle.lockfile'],
]
const TIMEOUT_MS = 1_800_000
const FLOOD_BYTES = 256 << 20
const TAIL_CHARS = 2000

interface SetupOptions {
  root: string
  record: string
  signal: AbortSignal
  /** Asked for only when it runs. Absent: none but the runner's. */
  surroundings?: () => Promise<Surroundings>
}

/**
 * Runs `command` in `root`, unless it has been run there with the same lock files. `record`: file that remembers. `surroundings`:
 * those of the session's commands, since what it starts may be what an agent wrote. Never rejects; resolves with sentences for
 * the person.
 */
export async function runSetup(
  command: string,
  { root, record, signal, surroundings }: SetupOptions,
): Promise<string[]> {
  try {
    const before = await keyOf(root, command)
    if ((await readFile(record, 'utf8').catch(() => '')) === before) return []
    const { env, enclosure } = (await surroundings?.()) ?? { env: commandEnvironment(process.env) }
    const plain = { program: 'bash', args: ['-c', 'exec bash -c "$0" 2>&1', command] }
    const how = enclosure?.wrap(plain.program, plain.args) ?? plain
    const began = performance.now()
    let tail = ''
    const decoder = new TextDecoder()
    const end = await runGroup(how.program, how.args, {
      ...{
        cwd: root,
        env,
        timeout_ms: TIMEOUT_MS,
        flood_bytes: FLOOD_BYTES,
        signal,
      },
      onBytes: (chunk) => {
        tail = (tail + decoder.decode(chunk, { stream: true })).slice(-TAIL_CHARS)
      },
    })
    const took = `${((performance.now() - began) / 1000).toFixed(1)} s`
    if (end.by === 'abort') return []
    if (end.by === 'exit' && end.code === 0) {
      // It may have written the lock file itself.
      await writeFile(record, await keyOf(root, command))
      return [`Set-up on this machine: ${command} (${took}).`]
    }
    const ended =
      end.by === 'exit' ? `ended with ${end.code ?? end.signal ?? 'an error'}` : `was ended (${end.by})`
    return [
      `Set-up on this machine failed: ${command} ${ended} after ${took}. Its output ends: ${tail.trim()}`,
    ]
  } catch (error) {
    return [`Set-up on this machine failed: ${command}: ${explain(error)}`]
  }
}

async function keyOf(root: string, command: string): Promise<string> {
  const hash = createHash('sha256').update(command)
  for (const name of LOCK_FILES) {
    const content = await readFile(join(root, name)).catch(() => undefined)
    if (content) hash.update(`\0${name}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}
