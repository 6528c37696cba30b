/** Completion as a person meets it: typed into real shells on a real terminal. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { Terminal } from '../src/terminal.ts'
import { until } from '../src/until.ts'

const CLI = join(import.meta.dirname, '../../runner/bin/baton.mjs')

let cluster: Cluster
let laptop: ClusterRunner
let sid: string
let home: string
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'task' })
  laptop = await cluster.runner('big box', { args: ['--pool', 'gpu:large'] })
  sid = await cluster.session(laptop)
  home = await cluster.ground.newFolder('home')
  await writeFile(join(home, 'baton'), `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`)
  await chmod(join(home, 'baton'), 0o755)
  await mkdir(join(home, 'work/my folder'), { recursive: true })
  await writeFile(join(home, 'work/an agent.ts'), '')
})
afterAll(() => cluster[Symbol.asyncDispose]())

const AGAIN_MS = 5000
const SHELLS = [
  { shell: 'bash', args: ['--norc'], prompt: `PS1='$ '`, load: 'eval "$(baton completion bash)"' },
  {
    ...{ shell: 'zsh', args: ['-f'], prompt: `PS1='$ '; autoload -Uz compinit; compinit -u -D` },
    load: 'eval "$(baton completion zsh)"',
  },
  {
    ...{ shell: 'fish', args: ['--no-config'], prompt: `function fish_prompt; echo -n '$ '; end` },
    load: 'baton completion fish | source',
  },
]

const isThere = (shell: string): boolean => {
  try {
    execFileSync(shell, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe.each(SHELLS)('$shell', ({ shell, args, prompt, load }) => {
  it.skipIf(!isThere(shell))(
    'V1, F8: completes commands, flags, names, files, and names quoted',
    async () => {
      await using terminal = Terminal.start({
        ...{ command: shell, args, cwd: join(home, 'work'), columns: 100, rows: 30 },
        env: {
          ...cluster.ground.environment(),
          ...{ HOME: home, PATH: `${home}:${process.env['PATH'] ?? ''}`, BATON_DATA: laptop.data },
          LANG: 'C.UTF-8',
        },
      })
      // Said in two parts, so that what is typed is not what is waited for.
      terminal.type(`${prompt}; ${load}; echo rea''dy\r`)
      await terminal.shows(/^ready/m)
      const completes = async (typed: string, shown: string): Promise<void> => {
        terminal.type(`${typed}\t`)
        let asked_at = performance.now()
        await until(`${typed} becomes ${shown}`, () => {
          // On a machine under load the relay may be too late for one Tab.
          if (performance.now() - asked_at > AGAIN_MS) {
            terminal.type('\t')
            asked_at = performance.now()
          }
          // Not every shell leaves a colon as it is.
          return terminal.screen.replaceAll('\\:', ':').includes(shown)
        }).catch((error: unknown) => {
          throw new Error(terminal.screen, { cause: error })
        })
        // Ctrl-U, Ctrl-L
        terminal.type('\x15\x0c')
        await terminal.hides(typed)
      }
      await completes('baton han', 'baton handoff')
      await completes('~/baton han', 'baton handoff')
      await completes('baton new --mode=e', '--mode=edit')
      await completes(`baton attach ${sid.slice(0, 4)}`, `baton attach ${sid.slice(0, 8)}`)
      await completes('baton handoff x --to b', '--to big\\ box')
      await completes('baton runner --pool g', '--pool gpu:large')
      await completes('baton new --agent a', '--agent an\\ agent.ts')
      await completes('baton new --workspace=m', '--workspace=my\\ folder/')
      await completes('baton mode "x y" f', 'baton mode "x y" full')
    },
  )
})
