/** What `attach` is made of, as plain functions: text made harmless and measured, keys, the editor, Markdown, rows, scrolling. */
import { describe, expect, it } from 'vitest'
import { callLines, itemLines } from '../src/cli/attach/rows.ts'
import { revealing, scrolled, windowOn, type Blocks, type Top } from '../src/cli/attach/scroll.ts'
import { BLANK, draftOf, edited, insert, laidOut, type Draft } from '../src/cli/term/editor.ts'
import { Keys, type Key } from '../src/cli/term/keys.ts'
import { markdownLines } from '../src/cli/term/markdown.ts'
import { coloursOf, painted } from '../src/cli/term/style.ts'
import { clean, cleanLine, cut, lineWidth, widthOf, wrap, type Line } from '../src/cli/term/text.ts'

const plain = (lines: readonly Line[]): string[] => lines.map((line) => line.map(({ text }) => text).join(''))
const shown = (text: string, width = 40): string[] => plain(markdownLines(text, width))

/** Everything that a terminal obeys, and what hides or reorders text. */
const HOSTILE = [
  '\x1b[2J\x1b[Hfaked',
  '\x1b]0;title\x07',
  '\x1b]52;c;cm0gLXJm\x1b\\',
  '\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\',
  '\x9b31mred',
  '\x1bP+q\x1b\\',
  '\x1b',
  'a\rb',
  'a\x08\x08b',
  'nul\0',
  '\x1b[?1049l',
  '\u202Egnp.exe',
  '\u2066hidden\u2069',
  '\ud800',
  'zero\u200bwidth',
]
const OBEYED = /[\p{Cc}\p{Cs}\u202a-\u202e\u2066-\u2069\u200b]/u

describe('text', () => {
  it('V6, C12: nothing that a terminal obeys comes through, whoever said it and however it is shown', () => {
    for (const hostile of HOSTILE) {
      expect(clean(hostile).replaceAll('\n', '')).not.toMatch(OBEYED)
      expect(cleanLine(hostile)).not.toMatch(OBEYED)
      const nameOf = (): string => hostile
      const base = { id: 'e1', at: 1 }
      const rows = [
        ...markdownLines(
          `# ${hostile}\n\n- ${hostile}\n\n\`${hostile}\`\n\n> ${hostile}\n\n[x](${hostile})`,
          30,
        ),
        ...callLines('bash', { command: hostile, [hostile]: hostile }, 30),
        ...callLines('edit', { path: hostile, old_string: hostile, new_string: `${hostile}!` }, 30),
        ...callLines('deploy', { to: hostile }, 30),
        ...[
          { ...base, kind: 'prompt' as const, text: hostile, command: 'c', device: 'd' },
          { ...base, kind: 'text' as const, text: hostile, repeated: 0 },
          { ...base, kind: 'stop' as const, device: 'd' },
          { ...base, kind: 'event' as const, tone: 'error' as const, text: hostile },
          { ...base, kind: 'handoff' as const, how: 'moved' as const, from: 'a', to: 'b', gap_ms: 1 },
          {
            ...{
              ...base,
              kind: 'tool' as const,
              name: hostile,
              input: { path: hostile },
              state: 'ok' as const,
              attempt: 1,
            },
            result: { text: hostile, is_error: false },
          },
          {
            ...{
              ...base,
              kind: 'tool' as const,
              name: 'bash',
              input: { command: hostile },
              state: 'error' as const,
            },
            ...{ attempt: 1, error: { code: 'x', message: hostile, printed: hostile } },
            allowed: { rules: [{ tool: hostile, prefix: hostile, action: 'allow' as const }] },
          },
        ].flatMap((item) => [
          ...itemLines(item, { width: 30, isOpen: true, nameOf, live: hostile }),
          ...itemLines(item, { width: 30, isOpen: false, nameOf, live: hostile }),
        ]),
      ]
      for (const line of rows) {
        expect(painted(line, 'none')).not.toMatch(OBEYED)
        expect(lineWidth(line)).toBeLessThanOrEqual(30)
      }
    }
  })

  it('C28: a thought is dim, and shows its beginning until it is opened', () => {
    const words = Array.from({ length: 60 }, (_, i) => `word${i}`).join(' ')
    const item = { kind: 'thought' as const, id: 'e1t', at: 0, text: words }
    const nameOf = (id: string): string => id
    const closed = itemLines(item, { width: 40, isOpen: false, nameOf })
    const open = itemLines(item, { width: 40, isOpen: true, nameOf })
    expect(plain(closed).at(-1)).toMatch(/^… \d+ more lines of thought$/)
    expect(closed.length).toBeLessThan(open.length)
    expect(plain(open).join(' ')).toContain('word59')
    for (const { as } of [...closed, ...open].flat()) expect(as).toBe('dim')
    expect(plain(itemLines({ ...item, text: 'I look.' }, { width: 40, isOpen: false, nameOf }))).toEqual([
      '',
      'I look.',
    ])
  })

  it('V6, C11: a call that a person decides about shows whole, with disguises made visible', () => {
    const [command] = plain(callLines('bash', { command: 'ls \x1b[8m; rm -rf ~', timeout_ms: 5 }, 80))
    expect(command).toBe('ls ⟨U+001B⟩[8m; rm -rf ~')
    expect(plain(callLines('bash', { command: 'ls', timeout_ms: 5 }, 80))).toEqual(['ls', 'timeout_ms: 5'])
    const long = 'x'.repeat(500)
    expect(plain(callLines('bash', { command: long }, 40)).join('')).toBe(long)
    const edit = plain(callLines('edit', { path: 'a.ts', old_string: 'one\ntwo', new_string: 'one\n2' }, 40))
    expect(edit).toEqual(['a.ts', '  one', '- two', '+ 2'])
  })

  it('measures what a terminal shows', () => {
    expect([
      widthOf('abc'),
      widthOf('日本'),
      widthOf('e\u0301'),
      widthOf('👩‍👩‍👧'),
      widthOf('🇩🇪'),
      widthOf('é'),
    ]).toEqual([3, 4, 1, 2, 2, 1])
    expect(cut('日本語', 4)).toBe('日…')
    expect(cut('abc', 3)).toBe('abc')
    expect(cut('abcd', 0)).toBe('')
  })

  it('wraps between words, within those that are too long, and never beyond the width', () => {
    expect(plain(wrap([{ text: 'one two three' }], 8))).toEqual(['one two ', 'three'])
    expect(plain(wrap([{ text: 'abcdefgh' }], 3))).toEqual(['abc', 'def', 'gh'])
    expect(plain(wrap([{ text: '日本語' }], 5))).toEqual(['日本', '語'])
    expect(plain(wrap([{ text: 'a b' }], 10, [{ text: '> ' }], [{ text: '  ' }]))).toEqual(['> a b'])
    expect(plain(wrap([{ text: '' }], 10))).toEqual([''])
    // A word over two styles stays one word.
    expect(plain(wrap([{ text: 'ab ' }, { text: 'cd', as: 'bold' }, { text: 'ef' }], 6))).toEqual([
      'ab ',
      'cdef',
    ])
  })

  it('has no sequences where a terminal has no colours, and no colours where nobody wants them', () => {
    const line: Line = [{ text: 'x', as: 'bold red' }]
    expect(painted(line, coloursOf({ TERM: 'dumb' }, true))).toBe('x')
    expect(painted(line, coloursOf({ TERM: 'xterm' }, false))).toBe('x')
    expect(painted(line, coloursOf({ TERM: 'xterm', NO_COLOR: '1' }, true))).toBe('\x1b[1mx\x1b[0m')
    expect(painted(line, coloursOf({ TERM: 'xterm' }, true))).toBe('\x1b[1;31mx\x1b[0m')
  })
})

describe('Markdown', () => {
  it('shows prose, lists, code, quotes and links', () => {
    expect(
      shown('# Head\n\nSome **bold** and `code`.\n\n- one\n  - two\n- [x] done\n\n3. three\n4. four'),
    ).toEqual([
      'Head',
      '',
      'Some bold and code.',
      '',
      '• one',
      '  • two',
      '[x] done',
      '',
      '3. three',
      '4. four',
    ])
    expect(shown('```ts\nconst a = 1\n\n  b\n```')).toEqual(['  const a = 1', '  ', '    b'])
    expect(shown('> quoted')).toEqual(['│ quoted'])
    expect(shown('[words](https://example.com)')).toEqual(['words (https://example.com)'])
    expect(shown('a < b &amp; <b>raw</b>')).toEqual(['a < b & <b>raw</b>'])
    expect(shown('half **open')).toEqual(['half **open'])
  })

  it('shows a table in columns, or as blocks where it does not fit', () => {
    const table = '| a | b |\n|---|---|\n| 1 | two words |'
    expect(shown(table, 40)).toEqual(['a  b        ', '1  two words'])
    expect(shown(table, 10)).toEqual(['a: 1', 'b: two ', '  words'])
  })
})

describe('keys', () => {
  const read = (...chunks: string[]): Key[] => {
    const keys = new Keys()
    return [...chunks.flatMap((chunk) => keys.read(Buffer.from(chunk, 'latin1'))), ...keys.flush()]
  }
  const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

  it('knows text, controls, arrows, and what was held', () => {
    expect(read('hi\r')).toEqual([{ text: 'hi', pasted: false }, { name: 'enter' }])
    expect(read('\x03\x18\t\x7f\n')).toEqual(
      ['ctrl-c', 'ctrl-x', 'tab', 'backspace', 'ctrl-j'].map((name) => ({ name })),
    )
    expect(read('\x1b[A\x1bOB\x1b[1;5C\x1b[3~\x1b[6~\x1bOP\x1b[Z')).toEqual(
      ['up', 'down', 'ctrl-right', 'delete', 'pagedown', 'f1', 'backtab'].map((name) => ({ name })),
    )
    expect(read('\x1b\r\x1bb\x1b[13;2u\x1b[27;5;13~')).toEqual(
      ['alt-enter', 'alt-b', 'shift-enter', 'ctrl-enter'].map((name) => ({ name })),
    )
  })

  it('a sequence and a letter may come in pieces, as over a slow line', () => {
    expect(read('\x1b', '[', '1;', '5D')).toEqual([{ name: 'ctrl-left' }])
    const [first = '', second = '', third = ''] = utf8('語')
    expect(read(first, second + third)).toEqual([{ text: '語', pasted: false }])
  })

  it('Escape is a key when nothing follows, and whatever is unknown is dropped', () => {
    expect(read('\x1b')).toEqual([{ name: 'escape' }])
    expect(read('\x1b[999;999ya')).toEqual([{ text: 'a', pasted: false }])
    expect(read('\x1b[200', '~x')).toEqual([])
    expect(read('\x1b[')).toEqual([])
  })

  it('a paste is one text, whatever is in it', () => {
    expect(read('\x1b[200~one\rtwo\x1b[A', '\x1b[201~x')).toEqual([
      { text: 'one\rtwo\x1b[A', pasted: true },
      { text: 'x', pasted: false },
    ])
  })
})

describe('the editor', () => {
  const press = (draft: Draft, ...keys: string[]): Draft =>
    keys.reduce((one, key) => edited(one, key, 10) ?? one, draft)

  it('moves and cuts by what a person sees as letters, words and lines', () => {
    const family = draftOf('a👩‍👩‍👧')
    expect(press(family, 'backspace')).toEqual({ text: 'a', at: 1 })
    expect(press(family, 'left', 'left')).toEqual({ ...family, at: 0 })
    expect(press(draftOf('one two'), 'ctrl-w')).toEqual({ text: 'one ', at: 4 })
    expect(press(draftOf('a\nbc'), 'ctrl-u')).toEqual({ text: 'a\n', at: 2 })
    expect(press(draftOf('a\nbc'), 'home', 'ctrl-k')).toEqual({ text: 'a\n', at: 2 })
    expect(press(draftOf('one two'), 'alt-b', 'alt-b', 'alt-f')).toMatchObject({ at: 3 })
    expect(insert(press(draftOf('ac'), 'left'), 'b')).toEqual({ text: 'abc', at: 2 })
    expect(edited(BLANK, 'backspace', 10)).toBeUndefined()
    expect(edited(BLANK, 'up', 10)).toBeUndefined()
  })

  it('goes up and down by rows as they show, and keeps its column as far as the row goes', () => {
    const draft = draftOf('0123456789abc\nxy')
    expect(laidOut(draft, 10)).toEqual({ rows: ['0123456789', 'abc', 'xy'], row: 2, column: 2 })
    expect(press(draft, 'up')).toMatchObject({ at: 12 })
    expect(press(draft, 'up', 'up')).toMatchObject({ at: 2 })
    expect(press(draft, 'up', 'up', 'down', 'down')).toMatchObject({ at: draft.text.length })
    // A row that is full has a place after it for the cursor.
    expect(laidOut(draftOf('0123456789'), 10)).toMatchObject({ row: 1, column: 0 })
  })
})

describe('scrolling', () => {
  const blocks: Blocks = {
    count: 10,
    lines: (index) =>
      Array.from({ length: (index % 3) + 1 }, (_, line): Line => [{ text: `${index}.${line}` }]),
  }
  const all = Array.from({ length: 10 }, (_, i) => blocks.lines(i)).flat()
  const seen = (top: Top, height = 5): string[] => plain(windowOn(blocks, top, height).lines)

  it('follows the end, and goes through every line, one at a time, up and down again', () => {
    expect(seen(undefined)).toEqual(plain(all.slice(-5)))
    let top: Top
    for (let first = all.length - 6; first >= 0; first--) {
      top = scrolled(blocks, top, 5, -1)
      expect(seen(top)).toEqual(plain(all.slice(first, first + 5)))
    }
    expect(seen(scrolled(blocks, top, 5, -1))).toEqual(plain(all.slice(0, 5)))
    for (let first = 1; first <= all.length - 5; first++) {
      top = scrolled(blocks, top, 5, 1)
      expect(seen(top)).toEqual(plain(all.slice(first, first + 5)))
    }
    expect(top).toBeUndefined()
  })

  it('C17: looks only at the blocks that show', () => {
    const looked = new Set<number>()
    const watched: Blocks = { count: 100_000, lines: (i) => (looked.add(i), [[{ text: String(i) }]]) }
    windowOn(watched, undefined, 20)
    scrolled(watched, undefined, 20, -100)
    expect(looked.size).toBeLessThan(300)
  })

  it('brings a block into sight with as little movement as it can', () => {
    expect(revealing(blocks, undefined, 5, 9)).toBeUndefined()
    expect(seen(revealing(blocks, undefined, 5, 2))[0]).toBe('2.0')
    expect(seen(revealing(blocks, { index: 0, line: 0 }, 5, 6)).at(-1)).toBe('6.0')
  })
})
