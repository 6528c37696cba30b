/**
 * Takes a command line apart, as far as permission rules need it: into the commands that it runs, with their words. What this reading
 * can't be sure of (substitutions, redirections, assignments, groups, here-documents, globs that name programs) makes the line not
 * plain, and a line that is not plain is never allowed by a prefix.
 */

export interface ShellCommand {
  /** Unquoted. */
  words: string[]
}

const KEYWORDS = new Set(
  'if then else elif fi for while until do done case esac in function select time coproc { } ! [['.split(' '),
)
/** They run what their arguments say. */
const RUNNERS = new Set(
  'eval exec source . command builtin env sudo doas nohup nice xargs sh bash zsh dash fish ssh find watch timeout'.split(
    ' ',
  ),
)

/** Reads a line of shell, POSIX quoting. `isPlain`: the words are surely what runs. */
export function commandsOf(line: string): { commands: ShellCommand[]; isPlain: boolean } {
  const commands: ShellCommand[] = []
  let words: string[] = []
  let word: string | undefined
  let isPlain = true
  const endWord = (): void => {
    if (word !== undefined) words.push(word)
    word = undefined
  }
  const endCommand = (): void => {
    endWord()
    if (words.length > 0) commands.push({ words })
    words = []
  }
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? ''
    if (char === "'") {
      const end = line.indexOf("'", at + 1)
      if (end < 0) return { commands: [...commands, { words }], isPlain: false }
      word = (word ?? '') + line.slice(at + 1, end)
      at = end
    } else if (char === '"') {
      const quoted = doubleQuoted(line, at + 1)
      if (!quoted) return { commands: [...commands, { words }], isPlain: false }
      isPlain &&= !quoted.expands
      word = (word ?? '') + quoted.text
      at = quoted.end
    } else if (char === '\\') {
      at++
      if (line[at] !== '\n') word = (word ?? '') + (line[at] ?? '')
    } else if (char === ' ' || char === '\t') endWord()
    else if (';&|\n'.includes(char)) endCommand()
    else if (char === '#' && word === undefined) {
      const end = line.indexOf('\n', at)
      at = end < 0 ? line.length : end - 1
    } else {
      if ('$`<>(){}!'.includes(char)) isPlain = false
      // A command may begin behind an opening bracket.
      if ('`()'.includes(char)) endCommand()
      else word = (word ?? '') + char
    }
  }
  endCommand()
  const isSure = isPlain && commands.every(({ words: [first = ''] }) => isProgram(first))
  return { commands: commands.map(withoutAssignments), isPlain: isSure }
}

function isProgram(first: string): boolean {
  return !KEYWORDS.has(first) && !RUNNERS.has(first) && !/^\w+\+?=/.test(first) && !/[*?[~]/.test(first)
}

function withoutAssignments({ words }: ShellCommand): ShellCommand {
  const first = words.findIndex((word) => !/^\w+\+?=/.test(word))
  return { words: first <= 0 ? words : words.slice(first) }
}

function doubleQuoted(
  line: string,
  from: number,
): { text: string; end: number; expands: boolean } | undefined {
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
