/**
 * May a line of shell run a command? Rules that forbid or ask are held against it, so whatever isn't sure is `maybe`. What a program does
 * with its words is known of a few only: some run them, some surely do not; of all others a mention of the command is a doubt.
 */
import { commandsOf, type ShellCommand, type Word } from './shell.ts'

export type Doubt = 'yes' | 'maybe' | 'no'

const SHELLS = new Set('sh bash zsh dash ksh fish ash'.split(' '))

/** They run what their arguments say. */
const RUNNERS = new Set([
  ...SHELLS,
  ...'eval exec source . command builtin env sudo doas su sg runuser pkexec gosu su-exec nohup nice ionice chrt'.split(
    ' ',
  ),
  ...'taskset setsid stdbuf time coproc function xargs parallel ssh watch timeout script unbuffer rlwrap strace'.split(
    ' ',
  ),
  ...'ltrace busybox toybox entr chroot unshare nsenter setpriv prlimit choom fakeroot bwrap firejail proot tini'.split(
    ' ',
  ),
  ...'trap alias flock systemd-run dbus-run-session xvfb-run direnv dotenv hyperfine at batch mapfile readarray'.split(
    ' ',
  ),
])
/** They run what their arguments say, too, but the first of these says what that is: a prefix can allow them. */
const LAUNCHERS = new Set('npx bunx pnpx uvx pipx'.split(' '))

/** They run what comes in. */
const READERS = new Set([...SHELLS, ...'. source at batch parallel ssh'.split(' ')])

/** They run none of their arguments, whatever these are. */
const INERT = new Set([
  ...'echo printf cat head tail wc grep egrep fgrep ls cd pwd mkdir rmdir touch cp mv rm ln chmod chown test [ true'.split(
    ' ',
  ),
  ...'false : cut tr sleep basename dirname stat du df kill diff cmp comm paste seq realpath readlink which hash type'.split(
    ' ',
  ),
  ...'uniq tee jq date read shift return exit break continue sha256sum md5sum uname id whoami set unset'.split(
    ' ',
  ),
])

const LINES_DEPTH = 8
/** Each of them may begin a command: more are not looked at one by one. */
const ARGUMENTS_MAX = 500

/** May this line run a command that begins with these words, by whatever path, with options in between, or by way of another program? */
export function mayRun(line: string, wanted: readonly string[], depth = 0): Doubt {
  if (depth > LINES_DEPTH) return 'maybe'
  const { commands, isWhole } = commandsOf(line)
  return most([...commands.map((command) => mayBe(command, wanted, depth)), isWhole ? 'no' : 'maybe'])
}

/** Does it run what its arguments say, so that no prefix can tell what it does? */
export function runsArguments({ words: [first] }: ShellCommand): boolean {
  return first !== undefined && (RUNNERS.has(nameOf(first.text)) || nameOf(first.text) === 'find')
}

function mayBe(
  { words, redirects, assigned }: ShellCommand,
  wanted: readonly string[],
  depth: number,
): Doubt {
  // Many programs run what a variable says: PAGER, GIT_SSH_COMMAND.
  const set = assigned.some(
    (value) => mayRun(value, wanted, depth + 1) === 'yes' || mentions([value], wanted),
  )
  return most([set ? 'maybe' : 'no', mayBeginWith(words, redirects, wanted, depth)])
}

function mayBeginWith(
  words: readonly Word[],
  redirects: boolean,
  wanted: readonly string[],
  depth: number,
): Doubt {
  const [first, ...rest] = words
  if (!first) return 'no'
  if (!first.isSure) return 'maybe'
  const name = nameOf(first.text)
  const itself = most([beginsLike(words, wanted), special(name, rest, wanted)])
  if (itself === 'yes' || INERT.has(name) || name === 'find' || name === 'git') return itself
  if (!RUNNERS.has(name) && !LAUNCHERS.has(name)) {
    const texts = rest.map(({ text }) => text)
    const isHidden = rest.some(({ isSure }) => !isSure) && mentions(texts, wanted.slice(0, 1))
    return isHidden || mentions(texts, wanted) ? 'maybe' : itself
  }
  if (rest.length > ARGUMENTS_MAX) return 'maybe'
  // It only tells where the program is.
  if (name === 'command' && /^-[vV]$/.test(rest[0]?.text ?? '')) return itself
  const inner = rest.map((word, i): Doubt => {
    if (!word.isSure) return 'maybe'
    // What comes in stands there: as a command, or as a script for a shell.
    if (word.text.includes('{}') && !/^-[iI]/.test(word.text)) {
      const before = rest.slice(0, i).map(({ text }) => nameOf(text))
      const isValue = /^-[iI]$/.test(before.at(-1) ?? '')
      if (
        before.some((text) => RUNNERS.has(text)) ||
        (!isValue && before.every((text) => text.startsWith('-')))
      )
        return 'maybe'
    }
    const own = nameOf(word.text)
    const from = rest.slice(i)
    // What is missing may come from the input, as with xargs.
    const asCommand = beginsLike(from, wanted, 'maybe')
    const asProgram = special(own, from.slice(1), wanted)
    const fromInput = readsInput(own, from.slice(1), redirects) || (name === 'xargs' && RUNNERS.has(own))
    const asLines = partsOf(word.text).map((text) => mayRun(text, wanted, depth + 1))
    return most([asCommand, asProgram, fromInput ? 'maybe' : 'no', ...asLines])
  })
  const mentioned = mentions(
    rest.map(({ text }) => text),
    wanted,
  )
  return most([itself, ...inner, mentioned || readsInput(name, rest, redirects) ? 'maybe' : 'no'])
}

/** A shell without a script reads one from its input. */
function readsInput(name: string, rest: readonly Word[], redirects: boolean): boolean {
  return (
    READERS.has(name) && (redirects || rest.every(({ text }) => text.startsWith('-')) || name === 'parallel')
  )
}

/** An argument as lines that may be run: itself, and the value in `-Svalue`, `--option=value`, `NAME=value`. */
function partsOf(text: string): string[] {
  const [, attached] = /^-[A-Za-z](.+)$/s.exec(text) ?? []
  const [, value] = /^[\w-]+=(.+)$/s.exec(text) ?? []
  return [text, attached, value].filter((part) => part !== undefined)
}

/** Do the texts name these words, one after the other, wherever? */
function mentions(texts: readonly string[], wanted: readonly string[]): boolean {
  const tokens = texts.flatMap((text) => partsOf(text)).flatMap((text) => text.split(/[^\w./+@:-]+/))
  let at = 0
  for (const token of tokens) {
    const want = wanted[at]
    if (want === undefined) break
    const isIt = token === want || (at === 0 && nameOf(token) === nameOf(want))
    if (isIt) at++
  }
  return wanted.length > 0 && at === wanted.length
}

/** Programs that run others in ways of their own. */
function special(name: string, rest: readonly Word[], wanted: readonly string[]): Doubt {
  if (name === 'git') return gitMayRun(rest)
  if (name === 'find') return findMayRun(rest, wanted)
  return 'no'
}

function findMayRun(rest: readonly Word[], wanted: readonly string[]): Doubt {
  const isRm = nameOf(wanted[0] ?? '') === 'rm'
  return most(
    rest.map(({ text, isSure }, i): Doubt => {
      // A pattern between quotes is sure; what is expanded may be an option.
      if (!isSure && !/[*?/.]/.test(text)) return 'maybe'
      if (text === '-delete') return isRm ? 'maybe' : 'no'
      return /^-(exec|ok)/.test(text) ? mayBeginWith([SUDO, ...rest.slice(i + 1)], false, wanted, 0) : 'no'
    }),
  )
}

/** Stands for any program that runs its arguments. */
const SUDO: Word = { text: 'sudo', isSure: true }

const GIT = new Set([
  ...'add am annotate apply archive bisect blame branch bundle cat-file check-ignore checkout cherry cherry-pick clean'.split(
    ' ',
  ),
  ...'clone commit commit-tree config count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref'.split(
    ' ',
  ),
  ...'format-patch fsck gc grep hash-object help init log ls-files ls-remote ls-tree merge merge-base merge-tree'.split(
    ' ',
  ),
  ...'mktree mv name-rev notes prune pull push range-diff read-tree rebase reflog remote repack replace reset restore'.split(
    ' ',
  ),
  ...'rev-list rev-parse revert rm shortlog show show-ref sparse-checkout stash status submodule switch symbolic-ref'.split(
    ' ',
  ),
  ...'tag update-index update-ref var version whatchanged worktree write-tree'.split(' '),
])
/** Settings that name no program. */
const GIT_SETTING =
  /^(user\.(name|email)|(author|committer)\.\w+|color\.[\w.]+|advice\.\w+|init\.defaultbranch|(commit|tag)\.gpgsign|(pull|push|rebase|branch|safe|fetch)\.[\w.]+|core\.(autocrlf|safecrlf|quotepath|filemode|ignorecase|eol|abbrev|longpaths|bare)|remote\.[\w-]+\.(url|fetch)|diff\.(renames|algorithm|context|noprefix)|merge\.(conflictstyle|ff)|log\.\w+|gc\.auto)(=|$)/i
/** Options by which a subcommand runs something; git takes them shortened. */
const GIT_RUNS: { [subcommand: string]: RegExp } = {
  archive: /^--(exe|rem)/,
  bisect: /^run$/,
  clone: /^(-u|-c|--u|--co|--te)/,
  fetch: /^--upl/,
  pull: /^--upl/,
  'ls-remote': /^(--u|--exe)/,
  push: /^--(rece|exe)/,
  grep: /^(-[a-zA-Z]*O|--op)/,
  rebase: /^(-[a-zA-Z]*x|--ex)/,
  submodule: /^foreach$/,
}

/** Through aliases, settings, hooks on a line: git can run anything. */
function gitMayRun(rest: readonly Word[]): Doubt {
  let at = 0
  for (; rest[at]?.text.startsWith('-'); at++) {
    const text = rest[at]?.text ?? ''
    if (/^--(config-env|exec-path=)/.test(text)) return 'maybe'
    if (
      text.startsWith('-c') &&
      !GIT_SETTING.test(text.length > 2 ? text.slice(2) : (rest[++at]?.text ?? ''))
    )
      return 'maybe'
    if (['-C', '--git-dir', '--work-tree', '--namespace'].includes(text)) at++
  }
  const [command, ...args] = rest.slice(at)
  if (!command) return 'no'
  // Otherwise an alias, or a program beside git.
  if (!command.isSure || !GIT.has(command.text)) return 'maybe'
  if (args.some(({ text }) => text.startsWith('ext::'))) return 'maybe'
  if (command.text === 'config') {
    const key = args.find(({ text }) => !text.startsWith('-') && !/^(get|set|unset|list)$/.test(text))
    return key === undefined || GIT_SETTING.test(key.text) ? 'no' : 'maybe'
  }
  const runs = GIT_RUNS[command.text]
  return runs && args.some(({ text, isSure }) => runs.test(text) || (!isSure && text.startsWith('$')))
    ? 'maybe'
    : 'no'
}

/** Words are compared one by one; options, with what may be their values, can stand between. */
function beginsLike(words: readonly Word[], wanted: readonly string[], whenShort: Doubt = 'no'): Doubt {
  let at = 0
  for (const [i, text] of wanted.entries()) {
    if (i === 0) {
      const [first] = words
      if (!first || (first.text !== text && nameOf(first.text) !== nameOf(text))) return 'no'
      at = 1
      continue
    }
    let mayBeValue = false
    for (;;) {
      const word = words[at++]
      if (!word) return whenShort
      if (word.text === text && word.isSure) break
      if (!word.isSure) return 'maybe'
      if (word.text.startsWith('-')) mayBeValue = !word.text.includes('=')
      else if (mayBeValue) mayBeValue = false
      else return 'no'
    }
  }
  return 'yes'
}

const nameOf = (program: string): string => program.slice(program.lastIndexOf('/') + 1)

function most(doubts: readonly Doubt[]): Doubt {
  if (doubts.includes('yes')) return 'yes'
  return doubts.includes('maybe') ? 'maybe' : 'no'
}
