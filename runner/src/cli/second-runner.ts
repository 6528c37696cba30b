/** What to type when a runner was started on the data folder of another: a folder, a link and a name of its own. */
import { quoted } from './args.ts'
import { TABLE } from './table.ts'

/** Between quotes, as a link should be. */
const LINK = '<LINK>'

/** Flags of `baton runner`, as they were given. */
export type RunnerFlags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/**
 * Commands, one a line. `isTaken`: is there something in that folder already? A link that was given is still good: it is only taken
 * by a runner that has its folder.
 */
export function secondRunner(
  flags: RunnerFlags,
  { data, name, isTaken }: { data: string; name: string; isTaken: (folder: string) => boolean },
): string {
  let n = 2
  while (isTaken(`${data}-${n}`)) n++
  const own: RunnerFlags = {
    ...{ ...flags, name: flags['name'] ?? `${name}-${n}`, metrics: nextPort(flags['metrics']) },
    ...{ data: `${data}-${n}`, join: flags['join'] ?? LINK },
  }
  const words = Object.keys(TABLE.runner.flags).flatMap((flag) =>
    [own[flag]].flat().flatMap((value) => {
      if (value === undefined || value === false) return []
      return typeof value === 'string' ? [`--${flag} ${quoted(value)}`] : [`--${flag}`]
    }),
  )
  const pair =
    flags['join'] === undefined ? [`baton pair --data ${quoted(data)}    # prints the ${LINK}`] : []
  return [...pair, `baton runner ${words.join(' ')}`].join('\n')
}

/** Two runners can't listen on one port. */
function nextPort(metrics: RunnerFlags[string]): RunnerFlags[string] {
  if (typeof metrics !== 'string') return metrics
  return metrics.replace(/[1-9]\d*$/, (port) => String(Number(port) + 1))
}
