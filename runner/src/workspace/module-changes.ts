/**
 * Looks whether a submodule holds what nobody else has. Its git folder is the agent's to write: a `git status` in it would run the
 * filters, monitors and programs that its settings name. So the files are compared through a git folder of ours.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { OFFLINE, type GitProgram } from './git-program.ts'
import { RAW_ATTRIBUTES } from './shadow-folder.ts'

/**
 * Changed or new files, or commits that no remote has. What can't be told counts as changed. `folder`: of the submodule;
 * `scratch`: a folder of ours.
 */
export async function hasOwnChanges(git: GitProgram, folder: string, scratch: string): Promise<boolean> {
  const own = await gitFolderOf(folder)
  if (own === undefined) return false
  await Promise.all(
    ['objects', 'refs', 'info'].map((name) => mkdir(join(scratch, name), { recursive: true })),
  )
  await Promise.all([
    writeFile(join(scratch, 'HEAD'), 'ref: refs/heads/none\n'),
    writeFile(join(scratch, 'config'), '[core]\nrepositoryformatversion = 0\nbare = false\n'),
    writeFile(join(scratch, 'info/attributes'), RAW_ATTRIBUTES),
  ])
  const env = {
    ...OFFLINE,
    GIT_DIR: scratch,
    GIT_WORK_TREE: folder,
    GIT_INDEX_FILE: join(own, 'index'),
    GIT_OBJECT_DIRECTORY: join(own, 'objects'),
  }
  const [changed, fresh, commits] = await Promise.all([
    git.run(['diff-files', '--raw', '--ignore-submodules=all'], { cwd: folder, env }),
    git.run(['ls-files', '--others', '--exclude-standard', '--directory'], { cwd: folder, env }),
    // Reads nothing of the files, so nothing of what its settings name is run.
    git.run(['--git-dir', own, 'rev-list', '--max-count=1', 'HEAD', '--not', '--remotes'], {
      cwd: folder,
      env: OFFLINE,
    }),
  ])
  return [changed, fresh, commits].some(({ code, stdout }) => code !== 0 || stdout.length > 0)
}

/** Undefined: not checked out. */
async function gitFolderOf(folder: string): Promise<string | undefined> {
  const link = join(folder, '.git')
  try {
    const named = /^gitdir: (.+)$/m.exec(await readFile(link, 'utf8'))?.[1]
    return named === undefined ? undefined : resolve(folder, named)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EISDIR' ? link : undefined
  }
}
