/** The files of a shadow's git folder: what it is told of the repository and of the person, and what it is not. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { gitEnvironment, type GitProgram } from './git-program.ts'
import type { Repository } from './repository.ts'

/** Files as they are, whatever `.gitattributes` says; nothing is run for it. */
export const RAW_ATTRIBUTES = '* -text -ident -filter !eol !working-tree-encoding !crlf\n'
/** Secrets stay where they are, unless the person names the file. What git tracks travels all the same. */
const ALWAYS_IGNORED = ['.env']

/**
 * Creates the files, or freshens them; the index is left. `hide`: absolute path never stored, e.g. the data folder.
 * `ignore`: further patterns.
 */
export async function makeShadowFolder(
  git: GitProgram,
  { dir, root }: { dir: string; root: string },
  { repository, hide, ignore }: { repository: Repository; hide: string; ignore: readonly string[] },
): Promise<void> {
  await mkdir(join(dir, 'info'), { recursive: true })
  await Promise.all([
    mkdir(join(dir, 'refs'), { recursive: true }),
    mkdir(join(dir, 'objects'), { recursive: true }),
  ])
  const inside = relative(root, hide)
  const hidden =
    inside === '' || inside.startsWith('..') || isAbsolute(inside) ? '' : `/${escapePattern(inside)}/\n`
  const ignored = await readFile(join(repository.common, 'info', 'exclude'), 'utf8').catch(() => '')
  const shallow = await readFile(join(repository.common, 'shallow'), 'utf8').catch(() => '')
  await Promise.all([
    writeFile(join(dir, 'HEAD'), 'ref: refs/heads/none\n'),
    writeFile(join(dir, 'config'), await settingsOf(git, dir, repository)),
    writeFile(join(dir, 'info', 'attributes'), RAW_ATTRIBUTES),
    writeFile(join(dir, 'info', 'exclude'), [ignored, ...ALWAYS_IGNORED, ...ignore, hidden].join('\n')),
    shallow === '' ? rm(join(dir, 'shallow'), { force: true }) : writeFile(join(dir, 'shallow'), shallow),
  ])
}

async function settingsOf(git: GitProgram, dir: string, repository: Repository): Promise<string> {
  const [excludes, quirks] = await Promise.all([
    personalExcludes(git, dir),
    git.run(['config', '--local', '--get-regexp', '^core\\.(ignorecase|precomposeunicode)$'], {
      cwd: repository.common,
    }),
  ])
  const sha256 = repository.format === 'sha256'
  const lines = ['[core]', `repositoryformatversion = ${sha256 ? 1 : 0}`, 'bare = false']
  for (const line of quirks.stdout.toString('utf8').split('\n')) {
    const [name, value] = line.split(' ')
    if (name?.startsWith('core.') && value) lines.push(`${name.slice('core.'.length)} = ${value}`)
  }
  if (excludes !== undefined) lines.push(`excludesFile = ${JSON.stringify(excludes)}`)
  if (sha256) lines.push('[extensions]', 'objectFormat = sha256')
  return `${lines.join('\n')}\n`
}

/** What this person ignores everywhere (`.DS_Store`, `.idea`) is not part of the work. */
async function personalExcludes(git: GitProgram, dir: string): Promise<string | undefined> {
  const { HOME, XDG_CONFIG_HOME } = gitEnvironment()
  if (HOME === undefined) return undefined
  const result = await git.run(['config', '--global', '--type=path', '--get', 'core.excludesFile'], {
    cwd: dir,
    env: { GIT_CONFIG_GLOBAL: join(HOME, '.gitconfig') },
  })
  const named = result.code === 0 ? result.stdout.toString('utf8').trim() : ''
  return named || join(XDG_CONFIG_HOME ?? join(HOME, '.config'), 'git', 'ignore')
}

/** A path as an ignore pattern that means only itself. */
function escapePattern(path: string): string {
  return path.replaceAll(/[\\*?[\]!# ]/g, '\\$&')
}
