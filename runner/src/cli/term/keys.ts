/** Bytes of a terminal as keys. Pure but for the one thing that bytes can't tell: whether an Escape is a key or the start of one. */
import { StringDecoder } from 'node:string_decoder'

/**
 * `text`: what was typed, one grapheme or more, or pasted. `name`: of any other key, with what was held: `enter`, `up`, `ctrl-x`,
 * `alt-enter`, `ctrl-left` …
 */
export type Key = { text: string; pasted: boolean } | { name: string }

const PASTE = '\x1b[200~'
const PASTE_END = '\x1b[201~'
/** A paste without end, or a terminal gone wild. */
const PASTE_CHARS_MAX = 1 << 20

const FINALS: Record<string, string> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  H: 'home',
  F: 'end',
  Z: 'backtab',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
}
const TILDES: Record<string, string> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
}
const CONTROLS: Record<string, string> = {
  '\r': 'enter',
  '\n': 'ctrl-j',
  '\t': 'tab',
  '\x7f': 'backspace',
  '\x08': 'ctrl-h',
  '\0': 'ctrl-space',
}

export class Keys {
  readonly #decoder = new StringDecoder('utf8')
  #rest = ''

  /** Keys that are whole; what is not waits for more, or for `flush`. */
  read(bytes: Buffer): Key[] {
    this.#rest += this.#decoder.write(bytes)
    return this.#take(false)
  }

  /** Nothing followed in time: an Escape that waits is the key. */
  flush(): Key[] {
    return this.#take(true)
  }

  /** Does something wait that only time can settle? */
  get isWaiting(): boolean {
    return this.#rest !== '' && !this.#rest.startsWith(PASTE)
  }

  #take(isOver: boolean): Key[] {
    const keys: Key[] = []
    while (this.#rest !== '') {
      const found = this.#next(isOver)
      if (!found) break
      this.#rest = this.#rest.slice(found.length)
      if (found.key) keys.push(found.key)
    }
    return keys
  }

  #next(isOver: boolean): { key?: Key; length: number } | undefined {
    const rest = this.#rest
    if (rest.startsWith(PASTE)) {
      const end = rest.indexOf(PASTE_END)
      if (end < 0) {
        if (rest.length < PASTE_CHARS_MAX) return undefined
        return { key: { text: rest.slice(PASTE.length), pasted: true }, length: rest.length }
      }
      return { key: { text: rest.slice(PASTE.length, end), pasted: true }, length: end + PASTE_END.length }
    }
    if (rest[0] === '\x1b') return escaped(rest, isOver)
    const control = controlIn(rest)
    if (control !== undefined) return { key: { name: control }, length: 1 }
    // As much plain text as there is, so that quick typing is one change.
    const [text = ''] = /^[^\p{Cc}]+/u.exec(rest) ?? []
    return text === '' ? { length: 1 } : { key: { text, pasted: false }, length: text.length }
  }
}

function controlIn(rest: string): string | undefined {
  const [char = ''] = rest
  const code = char.charCodeAt(0)
  if (CONTROLS[char] !== undefined) return CONTROLS[char]
  return code < 27 ? `ctrl-${String.fromCharCode(code + 96)}` : undefined
}

function escaped(rest: string, isOver: boolean): { key?: Key; length: number } | undefined {
  if (rest.length === 1) return isOver ? { key: { name: 'escape' }, length: 1 } : undefined
  const after = rest.slice(1)
  const [sequence, params, final] = /^\[([0-9;:?<=>]*)([A-Za-z~])/.exec(after) ?? []
  if (sequence !== undefined) {
    const name = nameOf(params ?? '', final ?? '')
    return { ...(name === undefined ? {} : { key: { name } }), length: 1 + sequence.length }
  }
  const [short, letter] = /^O([A-Z])/.exec(after) ?? []
  if (short !== undefined) {
    const name = FINALS[letter ?? '']
    return { ...(name === undefined ? {} : { key: { name } }), length: 1 + short.length }
  }
  // A sequence that is not whole yet; when it never will be, its Escape is dropped.
  if (/^(\[[0-9;:?<=>]*|O)$/.test(after)) return isOver ? { length: rest.length } : undefined
  if (rest[1] === '\x1b') return { key: { name: 'escape' }, length: 1 }
  const control = controlIn(rest.slice(1))
  if (control !== undefined) return { key: { name: `alt-${control}` }, length: 2 }
  const char = String.fromCodePoint(rest.codePointAt(1) ?? 0)
  return { key: { name: `alt-${char}` }, length: 1 + char.length }
}

function nameOf(params: string, final: string): string | undefined {
  const [first = '', second = '1', third = ''] = params.split(';')
  // CSI u and modifyOtherKeys: a code with what was held.
  if (final === 'u') return held(codeName(Number(first)), second)
  if (final === '~' && first === '27') return held(codeName(Number(third)), second)
  return held(final === '~' ? TILDES[first] : FINALS[final], second)
}

function codeName(code: number): string | undefined {
  const char = String.fromCodePoint(Number.isInteger(code) && code > 0 && code < 0x110000 ? code : 0x20)
  return char === '\x1b' ? 'escape' : (CONTROLS[char] ?? (/^[a-z]$/.test(char) ? char : undefined))
}

function held(name: string | undefined, modifiers: string): string | undefined {
  if (name === undefined) return undefined
  const bits = (Number.parseInt(modifiers, 10) || 1) - 1
  const signs = [bits & 4 ? 'ctrl-' : '', bits & 2 ? 'alt-' : '', bits & 1 ? 'shift-' : ''].join('')
  return signs + name
}
