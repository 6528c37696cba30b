/**
 * Takes a command line apart as bash does, as far as permission rules need it: into the commands that it runs, wherever they stand, with
 * their words. Nothing is expanded. What this reading can't be sure of makes the line not plain, and a line that is not plain is never
 * allowed by a prefix; what it can't read at all is a doubt about the whole line. `runner/test/shell-fuzz.test.ts` holds it against bash.
 */

export interface ShellCommand {
  /** Unquoted, without redirections and assignments before them. */
  words: Word[]
  /** The values of assignments before them. */
  assigned: string[]
  /** Something comes in or goes out by `<` or `>`. */
  redirects: boolean
}

export interface Word {
  text: string
  /** False: the shell expands it to something else. */
  isSure: boolean
}

export interface Reading {
  commands: ShellCommand[]
  /** The words are surely what runs, one command after the other. */
  isPlain: boolean
  /** All of it could be read: every quote is closed, and nothing was met that may hide a command. */
  isWhole: boolean
}

/** Words of the shell's own before a command; those that may have words of their own first stand among the runners. */
const KEYWORDS = new Set(
  'if then else elif fi for while until do done case esac in select { } ! [['.split(' '),
)

const ASSIGNMENT = /^\w+(\[[^\]]*\])?\+?=/
const REDIRECTION = /<<<|<<-?|<>|<&|<|>>|>\||>&|>|&>>|&>/y
/** `$x`, `$1`, `$?`, `$$` … */
const PARAMETER = /\$(\w+|[@*#?$!-])/y
const DEPTH_MAX = 40

export function commandsOf(line: string): Reading {
  const reader = new Reader(line)
  reader.read()
  const commands = reader.commands.map(stripped)
  const isPlain =
    !reader.inDoubt &&
    !reader.hasGroups &&
    commands.every(
      ({ words, redirects, assigned }, i) =>
        words.length > 0 &&
        words.length === reader.commands[i]?.words.length &&
        assigned.length === 0 &&
        !redirects &&
        words.every(({ isSure }) => isSure),
    )
  return { commands, isPlain, isWhole: !reader.inDoubt }
}

/** Where a reading ends: with the text, or with what closes what it stands in. */
type Close = ')' | undefined

interface HereDoc {
  delimiter: string
  isQuoted: boolean
  stripsTabs: boolean
}

class Reader {
  readonly commands: ShellCommand[] = []
  /** There are brackets, backquotes or substitutions. */
  hasGroups = false
  inDoubt = false
  #at: number
  readonly #line: string
  readonly #depth: number
  #words: Word[] = []
  #redirects = false
  #word: Word | undefined
  /** The next word is where a redirection goes. */
  #isTarget = false
  #heredocs: HereDoc[] = []
  /** `((` or `a[` stood before. */
  #mayShift = false
  #parameters = 0

  constructor(line: string, at = 0, depth = 0) {
    this.#line = line
    this.#at = at
    this.#depth = depth
    if (depth > DEPTH_MAX) {
      this.inDoubt = true
      this.#at = line.length
    }
  }

  /** Reads to the end, or past the bracket that closes it, and returns where that is. */
  read(close?: Close): number {
    const line = this.#line
    let brackets = 0
    let isClosed = close === undefined
    while (this.#at < line.length) {
      const char = line[this.#at] ?? ''
      if (this.#quote(char) || this.#redirection()) continue
      this.#at++
      if (char === ' ' || char === '\t') this.#endWord(close)
      else if (char === '\n') {
        this.#endCommand(close)
        this.#readBodies()
      } else if (char === '#' && this.#word === undefined) {
        const end = line.indexOf('\n', this.#at)
        this.#at = end < 0 ? line.length : end
      } else if (char === ';' || char === '&' || char === '|') this.#endCommand(close)
      else if (char === '(' || char === ')') {
        // A command may begin behind an opening bracket.
        this.hasGroups = true
        if (line[this.#at - 2] === '(') this.#mayShift = true
        const isPattern = char === ')' && brackets === 0 && !close
        this.#endWord(close)
        if (isPattern) this.#words = []
        this.#endCommand(close)
        if (close && char === ')' && brackets === 0) {
          isClosed = true
          break
        }
        if (!isPattern) brackets += char === '(' ? 1 : -1
      } else this.#add(char, !'*?[]{}~'.includes(char) || isBrace(line, this.#at - 1))
      if (char === '[' && /[\w$]/.test(line[this.#at - 2] ?? ' ')) this.#mayShift = true
    }
    this.#endCommand(close)
    if (!isClosed || this.#heredocs.length > 0) this.inDoubt = true
    return this.#at
  }

  /** Quotes, escapes and expansions, as they stand outside of quotes. */
  #quote(char: string): boolean {
    const line = this.#line
    if (char === "'") {
      const end = this.#endOf("'", this.#at + 1)
      this.#add(line.slice(this.#at + 1, end), true)
      this.#at = end + 1
    } else if (char === '"') {
      this.#at++
      this.#doubleQuoted('"')
    } else if (char === '\\') {
      const next = line[this.#at + 1]
      if (next === '\n') this.#joins()
      else this.#add(next ?? '\\', next !== undefined)
      this.#at += 2
    } else if (char === '$' && line[this.#at + 1] === "'") {
      // What its escapes stand for is left open; where it ends is not.
      const from = this.#at + 2
      let end = from
      while (end < line.length && line[end] !== "'") end += line[end] === '\\' ? 2 : 1
      if (end >= line.length) this.inDoubt = true
      this.#add(line.slice(from, end), false)
      this.#at = end + 1
    } else if (char === '$' && line[this.#at + 1] === '"') {
      this.#add('', false)
      this.#at += 2
      this.#doubleQuoted('"')
    } else return this.#expansion(char, false)
    return true
  }

  /** `$x`, `${…}`, `$(…)` and backquotes, also in double quotes. */
  #expansion(char: string, isQuoted: boolean): boolean {
    const line = this.#line
    if (char === '`') {
      const end = this.#endOfBackquotes()
      const escaped = isQuoted ? /\\([\\$`"])/g : /\\([\\$`])/g
      this.#readInner(line.slice(this.#at + 1, end).replaceAll(escaped, '$1'))
      this.#at = end + 1
    } else if (char !== '$') return false
    else if (line.startsWith('$(', this.#at)) this.#substitution()
    else if (line.startsWith('${', this.#at)) this.#parameter(isQuoted)
    else {
      PARAMETER.lastIndex = this.#at
      const [text = '$'] = PARAMETER.exec(line) ?? []
      this.#add(text, false)
      this.#at += text.length
    }
    return true
  }

  #substitution(): void {
    const from = this.#at
    const inner = new Reader(this.#line, from + 2, this.#depth + 1)
    this.#at = inner.read(')')
    this.#take(inner)
    this.#add(this.#line.slice(from, this.#at), false)
    this.hasGroups = true
  }

  /** `${x:-words}`: a word of its own up to the closing bracket. */
  #parameter(isQuoted: boolean): void {
    const line = this.#line
    const from = this.#at
    // Newer shells run what stands in `${ …; }`, and `@P` what the variable holds.
    if (/^\$\{(?:[\s|(]|[^}]*@P)/.test(line.slice(from, from + 200))) this.inDoubt = true
    this.#add('${', false)
    this.#at = ++this.#parameters > DEPTH_MAX ? line.length : this.#at + 2
    while (this.#at < line.length) {
      const char = line[this.#at] ?? ''
      if (char === '}') {
        this.#at++
        this.#parameters--
        this.#add('}', false)
        return
      }
      // Whether it quotes there depends on what stands before it.
      if (isQuoted && (char === "'" || char === '"')) this.inDoubt = true
      if ('<>'.includes(char) && line[this.#at + 1] === '(') this.inDoubt = true
      if (isQuoted ? this.#escape(char) || this.#expansion(char, true) : this.#quote(char)) continue
      this.#add(char, false)
      this.#at++
    }
    this.inDoubt = true
  }

  /** Up to the closing quote; without one, as in the body of a here-document, to the end. */
  #doubleQuoted(close: '"' | undefined): void {
    const line = this.#line
    this.#add('', true)
    while (this.#at < line.length) {
      const char = line[this.#at] ?? ''
      if (char === close) {
        this.#at++
        return
      }
      if (this.#escape(char) || this.#expansion(char, true)) continue
      this.#add(char, true)
      this.#at++
    }
    if (close) this.inDoubt = true
  }

  /** A backslash in double quotes counts only before some characters. */
  #escape(char: string): boolean {
    const next = this.#line[this.#at + 1] ?? ' '
    if (char !== '\\' || !'"\\$`\n'.includes(next)) return false
    if (next === '\n') this.#joins()
    else this.#add(next, true)
    this.#at += 2
    return true
  }

  /** At the end of a line a backslash joins it with the next one: what is split there might be a sign with a meaning. */
  #joins(): void {
    const [before = ' ', after = ' '] = [this.#line[this.#at - 1], this.#line[this.#at + 2]]
    if ('<>$('.includes(before) || (before === '&' && after === '>')) this.inDoubt = true
  }

  #endOf(text: string, from: number): number {
    const end = this.#line.indexOf(text, from)
    if (end >= 0) return end
    this.inDoubt = true
    return this.#line.length
  }

  #endOfBackquotes(): number {
    for (let end = this.#at + 1; end < this.#line.length; end++) {
      if (this.#line[end] === '`') return end
      if (this.#line[end] === '\\') end++
    }
    this.inDoubt = true
    return this.#line.length
  }

  #readInner(text: string): void {
    const inner = new Reader(text, 0, this.#depth + 1)
    inner.read()
    this.#take(inner)
    this.#add(`\`${text}\``, false)
    this.hasGroups = true
  }

  #take(inner: Reader): void {
    this.commands.push(...inner.commands)
    if (inner.inDoubt) this.inDoubt = true
    // Which of the newlines in it begins the body, nobody should have to know.
    if (this.#heredocs.length > 0) this.inDoubt = true
  }

  #redirection(): boolean {
    REDIRECTION.lastIndex = this.#at
    const [sign] = REDIRECTION.exec(this.#line) ?? []
    if (sign === undefined) return false
    // The number of a file descriptor belongs to the redirection.
    if (this.#word && /^\d+$/.test(this.#word.text)) this.#word = undefined
    this.#endWord(undefined)
    this.#at += sign.length
    this.#redirects = true
    if (sign === '<<' || sign === '<<-') this.#heredoc(sign === '<<-')
    else this.#isTarget = true
    return true
  }

  #heredoc(stripsTabs: boolean): void {
    // In arithmetic << shifts; read as a here-document it would hide what follows.
    if (this.#mayShift) this.inDoubt = true
    const [, raw = ''] =
      /^[ \t]*((?:'[^'\n]*'|"[^"\n\\$`]*"|\\[^\n]|[^\s'"\\;&|<>()$`])+)(?=[\s;&|<>()]|$)/.exec(
        this.#line.slice(this.#at, this.#at + 500),
      ) ?? ['', '']
    if (raw === '') {
      this.inDoubt = true
      return
    }
    this.#at = this.#line.indexOf(raw, this.#at) + raw.length
    const delimiter = raw.replaceAll(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3')
    this.#heredocs.push({ delimiter, isQuoted: delimiter !== raw, stripsTabs })
  }

  /** The bodies of here-documents begin at the end of the line. */
  #readBodies(): void {
    for (const { delimiter, isQuoted, stripsTabs } of this.#heredocs.splice(0)) {
      const from = this.#at
      let end: number | undefined
      while (end === undefined && this.#at < this.#line.length) {
        const found = this.#line.indexOf('\n', this.#at)
        const text = this.#line.slice(this.#at, found < 0 ? undefined : found)
        if ((stripsTabs ? text.replace(/^\t+/, '') : text) === delimiter) end = this.#at
        // It joins lines, and what is joined may be the last one.
        if (!isQuoted && text.endsWith('\\')) this.inDoubt = true
        this.#at = found < 0 ? this.#line.length : found + 1
      }
      if (end === undefined) this.inDoubt = true
      if (isQuoted) continue
      const body = new Reader(this.#line.slice(from, end ?? this.#line.length), 0, this.#depth + 1)
      body.#doubleQuoted(undefined)
      this.#take(body)
      this.hasGroups ||= body.hasGroups
    }
  }

  #add(text: string, isSure: boolean): void {
    const { text: before, isSure: wasSure } = this.#word ?? { text: '', isSure: true }
    this.#word = { text: before + text, isSure: wasSure && isSure }
  }

  #endWord(close: Close): void {
    if (!this.#word) return
    // Its patterns close brackets that nobody opened.
    if (close && this.#word.text === 'case') this.inDoubt = true
    if (this.#isTarget) this.#isTarget = false
    else this.#words.push(this.#word)
    this.#word = undefined
  }

  #endCommand(close: Close): void {
    this.#endWord(close)
    if (this.#words.length > 0 || this.#redirects) {
      this.commands.push({ words: this.#words, assigned: [], redirects: this.#redirects })
    }
    this.#words = []
    this.#redirects = false
    this.#isTarget = false
  }
}

/** A brace that stands alone is a word of the shell's, not an expansion; nor is `{}`. */
function isBrace(line: string, at: number): boolean {
  const char = line[at] ?? ''
  if (line.slice(at, at + 2) === '{}' || line.slice(at - 1, at + 1) === '{}') return true
  const isAlone = !/\S/.test(line[at - 1] ?? ' ') && !/[^\s;]/.test(line[at + 1] ?? ' ')
  return (char === '{' || char === '}' || char === '[' || char === ']') && isAlone
}

/** Without what the shell reads before a program's name. */
function stripped({ words, redirects }: ShellCommand): ShellCommand {
  // What stands there is held against patterns, it does not run.
  if (words.find(({ text }) => !KEYWORDS.has(text) || text === 'case')?.text === 'case')
    return { words: [], assigned: [], redirects }
  const first = words.findIndex(({ text }) => !KEYWORDS.has(text) && !ASSIGNMENT.test(text))
  const before = first < 0 ? words : words.slice(0, first)
  const assigned = before.flatMap(({ text }) => (ASSIGNMENT.test(text) ? [text.replace(ASSIGNMENT, '')] : []))
  return { words: first < 0 ? [] : words.slice(first), assigned, redirects }
}
