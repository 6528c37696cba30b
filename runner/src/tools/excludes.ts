/** The ignore file of the person for all their repositories (core.excludesFile), which our git does not look for by itself. */
import { GitProgram, gitEnvironment } from '../workspace/git-program.ts'

/** Arguments for git before its subcommand. Without a setting git uses its default, which it finds alone. */
export async function withOwnExcludes(cwd: string): Promise<string[]> {
  const { GIT_CONFIG_GLOBAL: own = '' } = process.env
  const { HOME: home = '', XDG_CONFIG_HOME: config } = gitEnvironment()
  // Git reads both, and the latter counts.
  const files = own !== '' ? [own] : [`${config || `${home}/.config`}/git/config`, `${home}/.gitconfig`]
  let found: string | undefined
  for (const file of files) {
    const args = ['config', '--file', file, '--includes', '--type=path', '--get', 'core.excludesFile']
    const result = await new GitProgram().run(args, { cwd })
    if (result.code === 0) found = result.stdout.toString('utf8').replace(/\n$/, '')
  }
  return found === undefined ? [] : ['-c', `core.excludesFile=${found}`]
}
