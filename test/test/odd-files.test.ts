/** Odd repositories and files on real processes: each travels, or is told in words to stay; nothing is lost. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { git, treeOf } from '../src/repo.ts'
import { Trip } from '../src/trip.ts'

/** A laptop with the repository, and a machine in the cloud that has none of it. */
async function machines(cluster: Cluster): Promise<{ laptop: ClusterRunner; cloud: ClusterRunner }> {
  const elsewhere = await cluster.ground.newFolder('elsewhere')
  const [laptop, cloud] = await Promise.all([
    cluster.runner('laptop'),
    cluster.runner('cloud', { workspace: elsewhere }),
  ])
  return { laptop, cloud }
}

/** What git says of a work tree: HEAD, branch, index, conflicts, operation under way, status. */
function gitState(root: string): Record<string, string> {
  const quietly = (...args: string[]): string => {
    try {
      return git(root, ...args)
    } catch {
      return 'none'
    }
  }
  const admin = git(root, 'rev-parse', '--absolute-git-dir')
  return {
    head: quietly('rev-parse', 'HEAD'),
    branch: quietly('symbolic-ref', 'HEAD'),
    index: git(root, 'ls-files', '--stage'),
    status: git(root, 'status', '--porcelain=v1', '-uall'),
    merge: existsSync(join(admin, 'MERGE_HEAD')) ? readFileSync(join(admin, 'MERGE_HEAD'), 'utf8') : 'none',
  }
}

/** Files as they are, but for what can't travel. */
function travels(root: string, ...stays: string[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(treeOf(root)).filter(([path]) => !stays.some((prefix) => path.startsWith(prefix))),
  )
}

/** All at once, in the work tree of a session that begins on a branch of a repository with a submodule `lib`. */
const ODD = String.raw`set -e
git() { command git -c user.name=A -c user.email=a@localhost -c commit.gpgsign=false "$@"; }
git checkout -q --detach
echo theirs > both.txt; git add both.txt; git commit -qm theirs; theirs=$(git rev-parse HEAD)
git checkout -q --detach HEAD~1
echo ours > both.txt; git add both.txt; git commit -qm ours
echo clean > clean.txt
git merge -q "$theirs" > /dev/null && exit 1
git add clean.txt; echo later >> clean.txt
printf one > $'line\nbreak.txt'
printf two > '😀 smile ü.txt'
printf three > $'not-utf8-\xff\xfe'
printf 'a\0b' > nul.bin
mkdir -p ' space/-dash' empty; printf four > ' space/-dash/:(glob)*'
printf '#!/bin/sh\n' > run.sh; chmod +x run.sh
ln -s nowhere dangling
rm src/file-0.txt
truncate -s 2G huge.bin
echo odd`

describe('odd files', () => {
  it('K1 K8 I11: all at once, laptop → cloud → laptop: equal each time, and what stays is told', async () => {
    await using cluster = await Cluster.open({ script: 'errand' })
    const library = await cluster.ground.newFolder('library')
    git(library, 'init', '--quiet', '--initial-branch=main')
    writeFileSync(join(library, 'lib.txt'), 'lib')
    git(library, 'add', '-A')
    git(library, 'commit', '--quiet', '-m', 'lib')
    const local = ['-c', 'protocol.file.allow=always']
    git(cluster.repo, ...local, 'submodule', '--quiet', 'add', library, 'lib')
    git(cluster.repo, 'commit', '--quiet', '-m', 'with lib')
    const { laptop, cloud } = await machines(cluster)
    const trip = await Trip.begin(cluster, laptop)
    expect(await trip.errand(ODD)).toContain('odd')
    const home = trip.root(laptop)
    const left = { files: travels(home, 'huge.bin', 'lib/'), git: gitState(home) }
    expect(left.git).toMatchObject({
      branch: 'none',
      merge: expect.stringMatching(/^[0-9a-f]{40}/) as string,
    })
    expect(Object.keys(left.files)).toEqual(
      expect.arrayContaining(['line\nbreak.txt', '😀 smile ü.txt', '0x6e6f742d757466382dfffe', 'empty/']),
    )

    await trip.move(cloud)
    expect(await trip.errand('echo more > cloud.txt; cat nul.bin | wc -c')).toContain('3')
    const there = trip.root(cloud)
    const arrived = travels(there, 'huge.bin', 'lib/')
    const { 'cloud.txt': more, ...others } = arrived
    expect(others).toEqual(left.files)
    expect(more).toBeDefined()
    const withoutHuge = (status: string): string =>
      status.replace(/^\?\? (huge.bin|cloud.txt)\n?/gm, '').trimEnd()
    const away = gitState(there)
    expect({ ...away, status: withoutHuge(away.status ?? '') }).toEqual({
      ...left.git,
      status: withoutHuge(left.git['status'] ?? ''),
    })

    await trip.move(laptop)
    await trip.errand('true')
    expect(travels(home, 'huge.bin', 'lib/')).toEqual(arrived)
    expect(statSync(join(home, 'huge.bin')).size).toBe(2 ** 31)
    const back = gitState(home)
    expect({ ...back, status: withoutHuge(back.status ?? '') }).toEqual({
      ...left.git,
      status: withoutHuge(left.git['status'] ?? ''),
    })
    // The merge goes on where it stopped.
    expect(
      await trip.errand(
        'echo both > both.txt; git add -A . ":!huge.bin"; git -c user.name=A -c user.email=a@localhost commit -qm merged; git log -1 --format=%P | wc -w',
      ),
    ).toContain('2')
    expect(await trip.notices()).toEqual([
      `Works on a copy of the files: ${home}`,
      'Submodules do not travel, only which commit they are at: lib. Elsewhere run: git submodule update --init',
      'huge.bin (2.0 GB) stays on this machine: at most 1.0 GB of changed files travel at once. All other files travel.',
      // In the cloud too, where their files are missing.
      'Submodules do not travel, only which commit they are at: lib. Elsewhere run: git submodule update --init',
    ])
  })

  it('K1 I11: a repository without any commit', async () => {
    await using cluster = await Cluster.open({ script: 'errand' })
    rmSync(join(cluster.repo, '.git'), { recursive: true })
    git(cluster.repo, 'init', '--quiet', '--initial-branch=young')
    git(cluster.repo, 'add', 'README.md')
    const { laptop, cloud } = await machines(cluster)
    const trip = await Trip.begin(cluster, laptop)
    await trip.errand('echo 1 > one.txt; git add one.txt; echo 2 >> one.txt')
    const home = trip.root(laptop)
    const left = { files: treeOf(home), git: gitState(home) }
    expect(left.git['head']).toBe('none')
    await trip.move(cloud)
    await trip.errand('true')
    const there = trip.root(cloud)
    expect({ files: treeOf(there), git: gitState(there) }).toEqual(left)
    await trip.errand('git -c user.name=A -c user.email=a@localhost commit -qm first && rm README.md')
    const changed = { files: treeOf(there), git: gitState(there) }
    await trip.move(laptop)
    await trip.errand('true')
    expect({ files: treeOf(home), git: gitState(home) }).toEqual(changed)
    expect(git(cluster.repo, 'status', '--porcelain', '-uno')).toBe('A  README.md')
    expect(await trip.notices()).toEqual([`Works on a copy of the files: ${home}`])
  })
})

describe('a full disk', () => {
  it('K8 I11: in the middle of a checkpoint it is told, the session stays, and goes on whole when there is room', async ({
    skip,
  }) => {
    await using cluster = await Cluster.open({ script: 'errand' })
    const disk = await cluster.ground.newFolder('disk')
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', disk], { stdio: 'ignore' })
    } catch {
      return skip('mounting a small disk is not allowed here')
    }
    try {
      // The repository is on the small disk, the work tree is not.
      const project = join(disk, 'project')
      execFileSync('git', ['clone', '-q', cluster.repo, project])
      const elsewhere = await cluster.ground.newFolder('elsewhere')
      const laptop = await cluster.runner('laptop', { workspace: project })
      const cloud = await cluster.runner('cloud', { workspace: elsewhere })
      const trip = await Trip.begin(cluster, laptop, undefined, 'full', project)
      const home = trip.root(laptop)
      await trip.errand(
        'for n in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom > noise-$n.bin; done; echo w > work.txt',
      )
      const files = treeOf(home)
      expect(Object.keys(files)).toContain('noise-6.bin')
      expect((await trip.notices()).at(-1)).toMatch(/^The workspace could not be stored after this: .*disk/s)
      const { client } = cluster
      await client.command(trip.sid, 'move', { label: 'cloud' }, { place: { prefer: cloud.id } })
      await client.untilEntries(trip.sid, 'it is told to stay', (all) =>
        JSON.stringify(all).includes('so the session stays on this runner'),
      )
      expect(await trip.errand('rm noise-[2-6].bin; git prune --expire=now; ls noise*')).toContain(
        'noise-1.bin',
      )
      expect((await client.info(trip.sid)).holder).toBe(laptop.id)
      const whole = treeOf(home)
      await trip.move(cloud)
      await trip.errand('true')
      expect(treeOf(trip.root(cloud))).toEqual(whole)
      expect(Object.keys(whole)).toEqual(expect.arrayContaining(['noise-1.bin', 'work.txt']))
    } finally {
      execFileSync('umount', ['-l', disk])
    }
  })
})
