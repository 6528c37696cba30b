/**
 * Ends commands whose runner died without a chance to do so itself (SIGKILL, out of memory): one small bash beside the runner,
 * told of every process group that begins and ends. When the pipe to it closes it kills those that are left, and on Linux all
 * that carries this runner's marker, so that an interrupted command does not go on in a work tree whose session continues
 * elsewhere (F52, I8).
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { RUN } from './processes.ts'

const SCRIPT = `groups=" "
while read -r word group; do
  case $word in
    begin) groups="$groups$group " ;;
    end) groups="\${groups/ $group / }" ;;
  esac
done
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
for try in 1 2 3 4 5 6 7 8 9 10; do
  found=0
  for file in $(grep -lsaF "/$0." /proc/[0-9]*/environ 2>/dev/null); do
    pid=\${file#/proc/}
    kill -KILL "\${pid%/environ}" 2>/dev/null && found=1
  done
  [ $found = 0 ] && break
done`

let keeper: ChildProcess | undefined

function tell(word: 'begin' | 'end', group: number): void {
  if (!keeper || keeper.exitCode !== null || keeper.signalCode !== null) {
    // Detached: Ctrl-C must not end it before the runner.
    const stdio: ['pipe', 'ignore', 'ignore'] = ['pipe', 'ignore', 'ignore']
    // Bash takes a socket as its input, which this pipe is, for a login from afar, and would run the person's .bashrc first.
    const args = ['--norc', '--noprofile', '-c', SCRIPT, RUN]
    // Nothing else of the environment: it holds secrets, and functions that would stand for `read` and `kill`.
    const { PATH = '/usr/bin:/bin' } = process.env
    keeper = spawn('bash', args, { stdio, detached: true, cwd: '/', env: { PATH } })
    keeper.on('error', () => {})
    keeper.stdin?.on('error', () => {})
    keeper.unref()
  }
  keeper.stdin?.write(`${word} ${group}\n`)
}

/** From now on the group dies with this process. Call `release` when it has ended. */
export function keep(group: number): void {
  tell('begin', group)
}

export function release(group: number): void {
  tell('end', group)
}
