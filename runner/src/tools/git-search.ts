/** Searches files on the disk by `git grep`, which respects ignore files. */
import { realpath, stat } from 'node:fs/promises'
import { relative } from 'node:path'
import { GitProgram, OFFLINE, type GitResult } from '../workspace/git-program.ts'
import { Refusal } from './define.ts'
import { withOwnExcludes } from './excludes.ts'
import type { InnerPath } from './paths.ts'

const OUTPUT_BYTES = 4 << 20
const TIMEOUT_MS = 30_000

export interface Search {
  /** Of one line. */
  pattern: string
  /** Only files that match. */
  glob?: string | undefined
  ignore_case?: boolean | undefined
  literal?: boolean | undefined
  files_only?: boolean | undefined
  context?: number | undefined
}

/** Throws Refusal when there is no such place, and with git's words for a pattern that is none. */
export async function gitSearch(
  input: Search,
  place: InnerPath,
  root: string,
  signal: AbortSignal,
): Promise<Found> {
  const info = await stat(place.real).catch(() => undefined)
  if (!info) throw new Refusal(`There is no file or folder ${place.shown}.`)
  const glob = input.glob?.replace(/^(\.?\/)+/, '')
  const top = await realpath(root)
  const where = relative(top, place.real)
  const specs: string[] = []
  if (glob === undefined || !info.isDirectory()) {
    if (where !== '') specs.push(`:(literal)${where}`)
  } else {
    const folder = where === '' ? '' : `${where.replaceAll(/[\\*?[\]]/g, '\\$&')}/`
    for (const part of alternatives(glob)) {
      specs.push(`:(glob)${folder}${part.includes('/') ? part : `**/${part}`}`)
    }
  }
  const flags = ['-n', '-I', '--no-color', '--untracked', '--exclude-standard']
  if (input.ignore_case) flags.push('-i')
  if (input.files_only) flags.push('-l')
  if (input.context) flags.push(`-C${input.context}`)
  const options = { cwd: top, signal, env: OFFLINE, timeout_ms: TIMEOUT_MS, max_bytes: OUTPUT_BYTES }
  const own = await withOwnExcludes(top)
  const run = (kind: string, extra: string[] = []): Promise<GitResult> =>
    new GitProgram().run(
      [...own, 'grep', ...flags, ...extra, kind, '-e', input.pattern, '--', ...specs],
      options,
    )

  const kind = input.literal ? '-F' : '-P'
  let result = await run(kind)
  if (/not a git repository/i.test(result.stderr)) {
    flags.splice(flags.indexOf('--untracked'), 1)
    result = await run(kind, ['--no-index'])
  }
  if (/not compiled with USE_LIBPCRE|without.*pcre/i.test(result.stderr)) result = await run('-E')
  // 1: no match. Beyond that git names the fault of the pattern.
  if (result.code > 1 && !result.cut) {
    const words =
      result.stderr
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^fatal: /, '') ?? ''
    throw new Refusal(`The search failed: ${words}`)
  }
  const lines = result.stdout.toString('utf8').split('\n')
  if (result.cut) lines.pop()
  if (lines.at(-1) === '') lines.pop()
  return { lines, cut: result.cut }
}

/** `path:line:text`, with context `path-line-text`. `cut`: there was more than is good to read. */
export interface Found {
  lines: string[]
  cut: boolean
}

/** Git's patterns know no braces: `*.{ts,tsx}` is two of them. */
export function alternatives(glob: string): string[] {
  const braces = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(glob)
  if (!braces) return [glob]
  const [, before = '', choices = '', after = ''] = braces
  return choices.split(',').flatMap((choice) => alternatives(before + choice + after))
}
