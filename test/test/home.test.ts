/** Laptop → cloud → laptop on real processes: what was changed at home meanwhile, a machine made ready, a crash on the way in. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { git, treeOf, type RepoOptions } from '../src/repo.ts'
import { Trip } from '../src/trip.ts'
import { until } from '../src/until.ts'

interface Machines extends AsyncDisposable {
  cluster: Cluster
  laptop: ClusterRunner
  cloud: ClusterRunner
}

/** A laptop with the repository, and a machine in the cloud that has none of it. */
async function machines(options: { repo?: RepoOptions; env?: NodeJS.ProcessEnv } = {}): Promise<Machines> {
  const { env = {}, repo } = options
  const cluster = await Cluster.open({ script: 'errand', ...(repo ? { repo } : {}) })
  const elsewhere = await cluster.ground.newFolder('elsewhere')
  const [laptop, cloud] = await Promise.all([
    cluster.runner('laptop', { env }),
    cluster.runner('cloud', { workspace: elsewhere }),
  ])
  return { cluster, laptop, cloud, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() }
}

const read = (root: string, path: string): string => readFileSync(join(root, path), 'utf8').trim()

describe('K10 I11: both sides changed', () => {
  const THERE =
    'echo session > src/file-0.txt; echo session > src/file-2.txt; echo s > session.txt; git rm -q src/file-4.txt'

  it.each(['worktree', 'in-place'])(
    '%s: both sets of changes exist, and are told by name; the session goes on with its own',
    async (place) => {
      await using all = await machines()
      const { cluster, laptop, cloud } = all
      const trip = await Trip.begin(cluster, laptop, { place })
      const home = place === 'in-place' ? cluster.repo : trip.root(laptop)
      expect(await trip.errand('pwd -P; echo before > before.txt')).toContain(home)
      await trip.move(cloud)
      await trip.errand(THERE)
      const there = treeOf(trip.root(cloud))

      // Meanwhile: the same file, another one, a new one, one that is deleted, and one changed in the same way.
      writeFileSync(join(home, 'src/file-0.txt'), 'person\n')
      writeFileSync(join(home, 'src/deep/file-1.txt'), 'person\n')
      writeFileSync(join(home, 'person.txt'), 'person\n')
      writeFileSync(join(home, 'src/file-2.txt'), 'session\n')
      rmSync(join(home, 'src/deep/file-3.txt'))

      await trip.move(laptop)
      expect(await trip.errand('cat src/file-0.txt')).toContain('session')
      expect(treeOf(home)).toEqual(there)
      const branch = `baton/kept/${trip.sid.slice(0, 8)}-1`
      const kept = (path: string): string => git(cluster.repo, 'show', `${branch}:${path}`)
      expect(kept('src/file-0.txt')).toBe('person')
      expect(kept('src/deep/file-1.txt')).toBe('person')
      expect(kept('person.txt')).toBe('person')
      expect(kept('before.txt')).toBe('before')
      expect(git(cluster.repo, 'ls-tree', '-r', '--name-only', branch)).not.toContain('file-3.txt')
      expect((await trip.notices()).slice(1)).toEqual([
        `Changes here that are in no checkpoint of the session are kept on branch ${branch}: person.txt, src/deep/file-1.txt, src/deep/file-3.txt, src/file-0.txt.`,
        `Changed on both sides: src/file-0.txt. The session's are in place; compare with: git diff ${branch}`,
      ])
      // What the notice says can be done.
      git(home, 'checkout', branch, '--', 'person.txt')
      expect(read(home, 'person.txt')).toBe('person')
    },
  )

  it('nothing is told where nothing was changed', async () => {
    await using all = await machines()
    const { cluster, laptop, cloud } = all
    const trip = await Trip.begin(cluster, laptop)
    await trip.errand('echo 1 > one.txt')
    await trip.move(cloud)
    await trip.errand(THERE)
    const there = treeOf(trip.root(cloud))
    await trip.move(laptop)
    await trip.errand('true')
    expect(treeOf(trip.root(laptop))).toEqual(there)
    expect(await trip.notices()).toHaveLength(1)
    expect(git(cluster.repo, 'branch', '--list', 'baton/kept/*')).toBe('')
  })
})

describe('K9: a machine is made ready', () => {
  it('in the cloud, before the first tool; failure and output are told; again only when a lock file changed', async () => {
    await using all = await machines({
      repo: {
        extra: {
          'package-lock.json': '{"v":1}\n',
          'baton.config.ts': `export default { workspace: { setup: 'sh setup.sh' } }\n`,
          // Says outside of Baton that it ran, and waits in the cloud until the test lets it go on.
          'setup.sh': [
            'case $PWD in *runner-cloud*) echo ran >> ../../ran; while ! [ -e ../../go ]; do sleep 0.05; done;; esac',
            'grep -q broken package-lock.json && { echo installing; echo no such package; exit 3; }',
            'mkdir -p ignored; echo ready > ignored/ready.txt',
          ].join('\n'),
        },
      },
    })
    const { cluster, laptop, cloud } = all
    const runs = (): number =>
      existsSync(join(cloud.data, 'ran'))
        ? readFileSync(join(cloud.data, 'ran'), 'utf8').split('\n').length - 1
        : 0
    const told = async (): Promise<string[]> =>
      (await trip.notices()).filter((text) => text.startsWith('Set-up on this machine'))
    const trip = await Trip.begin(cluster, laptop)
    expect(await trip.errand('cat ignored/ready.txt')).toContain('ready')
    expect(await told()).toHaveLength(1)

    await trip.move(cloud)
    const waiting = await trip.ask('cat ignored/ready.txt')
    const { client } = cluster
    await until('set-up has begun', () => runs() === 1)
    const begun = await client.untilEntries(trip.sid, 'the tool waits for it', (entries) => {
      const at = entries.findIndex((entry) => entry.kind === 'received' && entry.body.id === waiting)
      return (
        at >= 0 && entries.slice(at).some((entry) => entry.kind === 'intent' && entry.body.kind === 'tool')
      )
    })
    expect(begun.at(-1)?.kind).not.toBe('outcome')
    expect(existsSync(join(trip.root(cloud), 'ignored'))).toBe(false)
    writeFileSync(join(cloud.data, 'go'), '')
    expect(await trip.over(waiting)).toContain('ready')
    expect((await told())[1]).toMatch(/^Set-up on this machine: sh setup\.sh \(\d+\.\d s\)\.$/)

    // Home and back: it is ready.
    await trip.move(laptop)
    await trip.errand('echo 1 > one.txt')
    await trip.move(cloud)
    await trip.errand('true')
    expect(runs()).toBe(1)
    await trip.move(laptop)
    await trip.errand('echo \'{"v":"broken"}\' > package-lock.json')
    await trip.move(cloud)
    // What failed does not keep the agent from working.
    expect(await trip.errand('cat package-lock.json')).toContain('broken')
    expect(runs()).toBe(2)
    expect((await told()).at(-1)).toMatch(
      /^Set-up on this machine failed: sh setup\.sh ended with 3 after .*installing\nno such package$/s,
    )
  })
})

/**
 * Stands in for git: at the layout that follows the trigger, half of the files are as they shall be, what goes is gone, the lock lies
 * there, and it never comes back.
 */
const HALF_WAY = `#!/bin/bash
real=REAL; at=AT
if [[ -e $at/trigger && " $* " == *" read-tree -m -u "* ]]; then
  mv "$at/trigger" "$at/fired"
  tree="\${@: -1}"; before=()
  for arg in "$@"; do [[ $arg == read-tree ]] && break; before+=("$arg"); done
  index="\${GIT_INDEX_FILE:-$GIT_DIR/index}"
  "$real" "\${before[@]}" diff-index -z --cached --diff-filter=A --name-only "$tree" | xargs -0 -r rm -f
  export GIT_INDEX_FILE="$at/half"
  "$real" "\${before[@]}" read-tree "$tree"
  mapfile -d '' -t paths < <("$real" "\${before[@]}" ls-files -z)
  printf '%s\\0' "\${paths[@]:0:\${#paths[@]}/2}" | "$real" "\${before[@]}" checkout-index -f -z --stdin
  touch "$index.lock" "$at/half-way"
  exec sleep 1000
fi
exec "$real" "$@"
`

describe('I11: a runner killed while it lays files out at home', () => {
  it('when it is back they are whole, and what the person had changed is kept and told', async () => {
    const first = await machines({ repo: { files: 40 } })
    await using all = first
    const { cluster, laptop, cloud } = all
    const at = await cluster.ground.newFolder('half-way')
    const wrapper = join(at, 'git')
    const path = process.env['PATH'] ?? ''
    const real =
      path
        .split(':')
        .map((folder) => join(folder, 'git'))
        .find(existsSync) ?? 'git'
    writeFileSync(wrapper, HALF_WAY.replace('REAL', real).replace('AT', at))
    chmodSync(wrapper, 0o755)

    const trip = await Trip.begin(cluster, laptop)
    await trip.errand('true')
    const home = trip.root(laptop)
    await trip.move(cloud)
    await trip.errand(
      'for f in $(git ls-files src); do echo session > $f; done; echo s > session.txt; git rm -qf README.md',
    )
    const there = treeOf(trip.root(cloud))
    // It comes back with the other git.
    await cluster.kill(laptop)
    const { data, device } = laptop
    const restart = (env: NodeJS.ProcessEnv): Promise<ClusterRunner> =>
      cluster.runner('laptop', { data, device, env })
    const halfway = await restart({ PATH: `${at}:${path}` })
    // In both halves, and one that is new.
    const sources = git(home, 'ls-files', 'src').split('\n')
    const [early = '', late = ''] = [sources[0], sources.at(-1)]
    for (const file of [early, late, 'mine.txt']) writeFileSync(join(home, file), 'person\n')
    writeFileSync(join(at, 'trigger'), '')
    await cluster.client.command(trip.sid, 'move', { label: 'laptop' }, { place: { prefer: laptop.id } })
    await until('half of the files are laid out', () => existsSync(join(at, 'half-way')))
    const half = treeOf(home)
    expect(half[early]).toBe(there[early])
    expect(half[late]).not.toBe(there[late])
    expect(half['mine.txt']).toBeUndefined()
    await cluster.kill(halfway)

    const again = await restart({})
    await trip.move(again)
    await trip.errand('true')
    expect(treeOf(home)).toEqual(there)
    const kept = git(cluster.repo, 'branch', '--format=%(refname:short)', '--list', 'baton/kept/*').split(
      '\n',
    )
    const told = (await trip.notices()).join('\n')
    for (const branch of kept) expect(told).toContain(branch)
    const all_kept = (file: string): string[] =>
      kept.map((branch) => git(cluster.repo, 'show', `${branch}:${file}`))
    expect(all_kept(early)).toContain('person')
    expect(all_kept(late)).toContain('person')
    expect(git(cluster.repo, 'show', `${kept[0] ?? ''}:mine.txt`)).toBe('person')
    expect(told).toContain(`mine.txt, ${early}, ${late}.`)
  })
})
