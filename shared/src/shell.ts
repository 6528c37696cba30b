/**
 * Takes a command line apart, as far as permission rules need it: into the commands that it runs, with their words. What this reading
 * can't be sure of (expansions, redirections, assignments, groups, programs that run their arguments) makes the line not plain, and a
 * line that is not plain is never allowed by a prefix.
 */

export interface ShellCommand {
  /** Unquoted, without redirections and assignments before them. */
  words: Word[]
  /** Something comes in or goes out by `<` or `>`. */
  redirects: boolean
}

export interface Word {
  text: string
  /** False: the shell expands it to something else. */
  isSure: boolean
}

const KEYWORDS = new Set(
  'if then else elif fi for while until do done case esac in function select time coproc { } ! [['.split(' '),
)
const SHELLS = new Set('sh bash zsh dash ksh fish ash'.split(' '))
/** They run what their arguments say. */
const RUNNERS = new Set([
  ...SHELLS,
  ...'eval exec source . command builtin env sudo doas su nohup nice ionice chrt taskset setsid stdbuf'.split(
    ' ',
  ),
  ...'xargs parallel ssh find watch timeout script unbuffer strace ltrace busybox entr chroot unshare'.split(
    ' ',
  ),
  ...'trap alias nsenter flock systemd-run dbus-run-session xvfb-run'.split(' '),
])

const ASSIGNMENT = /^\w+\+?=/

/** Reads a line of shell, POSIX quoting. `isPlain`: the words are surely what runs. `isWhole`: every quote is closed. */
export function commandsOf(line: string): { commands: ShellCommand[]; isPlain: boolean; isWhole: boolean } {
  const reader = new Reader()
  const isWhole = reader.read(line)
  const isPlain =
    isWhole &&
    !reader.hasGroups &&
    reader.commands.every(({ words, redirects }) => !redirects && words.every(({ isSure }) => isSure)) &&
    reader.commands.every(({ words: [first] }) => first !== undefined && isProgram(first.text))
  return { commands: reader.commands.map(stripped), isPlain, isWhole }
}

class Reader {
  readonly commands: ShellCommand[] = []
  hasGroups = false
  #words: Word[] = []
  #redirects = false
  #word: Word | undefined
  /** The next word is where a redirection goes. */
  #isTarget = false

  /** False: a quote is not closed. */
  read(line: string): boolean {
    for (let at = 0; at < line.length; at++) {
      const char = line[at] ?? ''
      if (char === "'" || char === '"') {
        const quoted = char === "'" ? singleQuoted(line, at + 1) : doubleQuoted(line, at + 1)
        if (!quoted) {
          this.#endCommand()
          return false
        }
        this.#add(quoted.text, !quoted.expands)
        if (quoted.expands) this.#readInner(quoted.text)
        at = quoted.end
      } else if (char === '\\') {
        at++
        if (line[at] !== '\n') this.#add(line[at] ?? '', true)
      } else if (char === ' ' || char === '\t') this.#endWord()
      else if (';&|\n'.includes(char)) this.#endCommand()
      else if (char === '#' && this.#word === undefined) {
        const end = line.indexOf('\n', at)
        at = end < 0 ? line.length : end - 1
      } else if (char === '<' || char === '>') {
        this.#redirect()
        while ('<>&|'.includes(line[at + 1] ?? ' ')) at++
      } else if ('`()'.includes(char)) {
        // A command may begin behind an opening bracket.
        this.hasGroups = true
        this.#endCommand()
      } else this.#add(char, !'$*?[]{}~'.includes(char) || isBrace(line, at))
    }
    this.#endCommand()
    return true
  }

  /** Substitutions in double quotes run commands, too. */
  #readInner(text: string): void {
    for (const part of text.split(/\$\(|`/).slice(1)) {
      const inner = new Reader()
      inner.read(part)
      this.commands.push(...inner.commands)
    }
  }

  #add(text: string, isSure: boolean): void {
    const { text: before, isSure: wasSure } = this.#word ?? { text: '', isSure: true }
    this.#word = { text: before + text, isSure: wasSure && isSure }
  }

  #redirect(): void {
    // The number of a file descriptor belongs to the redirection.
    if (this.#word && /^\d+$/.test(this.#word.text)) this.#word = undefined
    this.#endWord()
    this.#redirects = true
    this.#isTarget = true
  }

  #endWord(): void {
    if (!this.#word) return
    if (this.#isTarget) this.#isTarget = false
    else this.#words.push(this.#word)
    this.#word = undefined
  }

  #endCommand(): void {
    this.#endWord()
    if (this.#words.length > 0 || this.#redirects) {
      this.commands.push({ words: this.#words, redirects: this.#redirects })
    }
    this.#words = []
    this.#redirects = false
    this.#isTarget = false
  }
}

/** A brace that stands alone is a word of the shell's, not an expansion. */
function isBrace(line: string, at: number): boolean {
  const char = line[at] ?? ''
  const isAlone = !/\S/.test(line[at - 1] ?? ' ') && !/[^\s;]/.test(line[at + 1] ?? ' ')
  return (char === '{' || char === '}' || char === '[' || char === ']') && isAlone
}

function isProgram(first: string): boolean {
  return !KEYWORDS.has(first) && !RUNNERS.has(nameOf(first)) && !ASSIGNMENT.test(first)
}

/** Without what the shell reads before a program's name. */
function stripped({ words, redirects }: ShellCommand): ShellCommand {
  const first = words.findIndex(({ text }) => !KEYWORDS.has(text) && !ASSIGNMENT.test(text))
  return { words: first < 0 ? [] : words.slice(first), redirects }
}

const nameOf = (program: string): string => program.slice(program.lastIndexOf('/') + 1)

export type Doubt = 'yes' | 'maybe' | 'no'

/** May this line run a command that begins with these words, by whatever path, with options in between, or by way of another program? */
export function mayRun(line: string, wanted: readonly string[]): Doubt {
  const { commands, isWhole } = commandsOf(line)
  return most([...commands.map((command) => mayBe(command, wanted)), isWhole ? 'no' : 'maybe'])
}

function mayBe({ words, redirects }: ShellCommand, wanted: readonly string[]): Doubt {
  const [first, ...rest] = words
  if (!first) return 'no'
  if (!first.isSure) return 'maybe'
  const name = nameOf(first.text)
  const itself = beginsLike(words, wanted)
  if (!RUNNERS.has(name)) return itself
  const inner = rest.map((word, i): Doubt => {
    if (!word.isSure) return 'maybe'
    // What is missing may come from the input, as with xargs.
    const asCommand = beginsLike(rest.slice(i), wanted, 'maybe')
    const asLine = /\s/.test(word.text) ? mayRun(word.text, wanted) : 'no'
    return most([asCommand, asLine])
  })
  // A shell without a script reads one from its input.
  const reads = SHELLS.has(name) && (redirects || rest.every(({ text }) => text.startsWith('-')))
  return most([itself, ...inner, reads ? 'maybe' : 'no'])
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

function most(doubts: readonly Doubt[]): Doubt {
  if (doubts.includes('yes')) return 'yes'
  return doubts.includes('maybe') ? 'maybe' : 'no'
}

interface Quoted {
  text: string
  end: number
  expands: boolean
}

function singleQuoted(line: string, from: number): Quoted | undefined {
  const end = line.indexOf("'", from)
  return end < 0 ? undefined : { text: line.slice(from, end), end, expands: false }
}

function doubleQuoted(line: string, from: number): Quoted | undefined {
  let text = ''
  let expands = false
  for (let at = from; at < line.length; at++) {
    const char = line[at] ?? ''
    if (char === '"') return { text, end: at, expands }
    if (char === '\\' && '"\\$`\n'.includes(line[at + 1] ?? ' ')) {
      at++
      if (line[at] !== '\n') text += line[at] ?? ''
      continue
    }
    if (char === '$' || char === '`') expands = true
    text += char
  }
  return undefined
}
