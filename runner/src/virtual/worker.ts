/** Runs command lines of one session by just-bash, in a thread of its own: nothing here reaches the machine. */
import { parentPort } from 'node:worker_threads'
import { Bash, InMemoryFs } from 'just-bash'
import { ROOT } from './root.ts'
import { changeBetween, TREE_BYTES_MAX, withChange, type Change, type Node, type Tree } from './tree.ts'

export interface Ask {
  command: string
  /** What has changed since the last ask; at first everything. */
  change: Change
}

export interface Answer {
  output: string
  code: number
  change: Change
}

const HOME = '/home/user'

const files = new InMemoryFs({}, { maxTotalBytes: 2 * TREE_BYTES_MAX })
const bash = new Bash({
  fs: files,
  cwd: ROOT,
  env: { HOME, TERM: 'dumb', NO_COLOR: '1' },
  // The thread is the limit: it is ended at the time-out.
  executionLimits: {
    maxCommandCount: 10_000_000,
    maxLoopIterations: 10_000_000,
    maxAwkIterations: 10_000_000,
    maxSedIterations: 10_000_000,
    maxWorkUnits: 100_000_000,
  },
})
let known: Tree = new Map()

async function apply({ set, removed }: Change): Promise<void> {
  for (const path of removed) await files.rm(`${ROOT}/${path}`, { recursive: true, force: true })
  // Folders first, then what may link to files.
  const order = { folder: 0, file: 1, link: 2 }
  for (const [path, node] of set.toSorted(([, a], [, b]) => order[a.type] - order[b.type])) {
    const full = `${ROOT}/${path}`
    const before = known.get(path)
    if (before && before.type !== node.type) await files.rm(full, { recursive: true, force: true })
    if (node.type === 'folder') await files.mkdir(full, { recursive: true })
    else if (node.type === 'file') await files.writeFile(full, node.bytes)
    else {
      await files.rm(full, { force: true })
      await files.symlink(node.target, full)
    }
    if (node.type !== 'link') await files.chmod(full, node.mode)
  }
  known = withChange(known, { set, removed })
}

/** Everything under the root as it is now. */
async function scan(folder: string, into: Map<string, Node>): Promise<Map<string, Node>> {
  for (const name of await files.readdir(folder)) {
    const full = `${folder}/${name}`
    const path = full.slice(ROOT.length + 1)
    const info = await files.lstat(full)
    if (info.isSymbolicLink) into.set(path, { type: 'link', target: await files.readlink(full) })
    else if (info.isDirectory) {
      into.set(path, { type: 'folder', mode: info.mode & 0o7777 })
      await scan(full, into)
    } else {
      // A copy: what the shell goes on with must not change what is sent.
      const bytes = Uint8Array.from(await files.readFileBuffer(full))
      into.set(path, { type: 'file', mode: info.mode & 0o7777, bytes })
    }
  }
  return into
}

async function answer({ command, change }: Ask): Promise<Answer> {
  await files.mkdir(ROOT, { recursive: true })
  await files.mkdir(HOME, { recursive: true })
  await apply(change)
  // Both streams in the order in which they are written.
  const { stdout, stderr, exitCode } = await bash.exec(`exec 2>&1\n${command}`, { rawScript: true })
  await files.mkdir(ROOT, { recursive: true })
  const after = await scan(ROOT, new Map())
  const made = changeBetween(known, after)
  known = after
  return { output: stdout + stderr, code: exitCode, change: made }
}

parentPort?.on('message', (ask: Ask) => {
  answer(ask).then(
    (given) => parentPort?.postMessage(given),
    (error: unknown) => {
      // Ends the thread: whoever asked learns of it, and starts a new one.
      throw error
    },
  )
})
