/**
 * The whole terminal as a screen of lines. Only what changed is written. Whatever ends the program, the terminal is given back as it
 * was: its modes are restored when it closes and, in the same tick, when the process ends for any other reason but SIGKILL.
 */
import { writeSync } from 'node:fs'
import type { ReadStream, WriteStream } from 'node:tty'
import { Keys, type Key } from './keys.ts'

/** Alternate screen, bracketed paste, no automatic wrapping: a line that measures wrongly must not push the others. */
const ENTER = '\x1b[?1049h\x1b[?2004h\x1b[?7l\x1b[2J'
const LEAVE = '\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l'
/** Terminals that know it show a frame at once; others ignore it. */
const BEGIN = '\x1b[?2026h\x1b[?25l'
const END = '\x1b[?2026l'
/** What follows an Escape that is no key comes with it, also over a slow line. */
const ESCAPE_MS = 60
const STDOUT = 1

export interface Frame {
  /** One for each row, painted, no wider than the screen. */
  lines: readonly string[]
  /** Where the cursor stands, from 0; absent: hidden. */
  cursor?: { row: number; column: number }
}

export interface ScreenHandlers {
  onKey: (key: Key) => void
  onResize: () => void
  /** The terminal is gone. */
  onHangup: () => void
}

export class Screen implements Disposable {
  readonly #input: ReadStream
  readonly #output: WriteStream
  readonly #on: ScreenHandlers
  readonly #keys = new Keys()
  #shown: readonly string[] = []
  #isOpen = false
  #escape: ReturnType<typeof setTimeout> | undefined
  readonly #restore = (): void => this.#leave()

  constructor(input: ReadStream, output: WriteStream, on: ScreenHandlers) {
    this.#input = input
    this.#output = output
    this.#on = on
    this.open()
  }

  /** A terminal that does not tell its size is taken for the smallest common one. */
  get rows(): number {
    return this.#output.rows > 0 ? this.#output.rows : 24
  }
  get columns(): number {
    return this.#output.columns > 0 ? this.#output.columns : 80
  }

  /** May more be written, or does a slow line still carry the last frame? */
  get isReady(): boolean {
    return !this.#output.writableNeedDrain
  }

  onceReady(then: () => void): void {
    this.#output.once('drain', then)
  }

  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    process.once('exit', this.#restore)
    this.#input.setRawMode(true)
    this.#output.write(ENTER)
    this.#shown = []
    this.#input.on('data', this.#read)
    this.#input.on('end', this.#on.onHangup)
    this.#input.on('error', this.#on.onHangup)
    this.#output.on('resize', this.#resized)
    this.#output.on('error', this.#on.onHangup)
    this.#input.resume()
  }

  /** Gives the terminal back; `open` takes it again. */
  close(): void {
    if (!this.#isOpen) return
    this.#leave()
    process.off('exit', this.#restore)
    clearTimeout(this.#escape)
    this.#input.off('data', this.#read)
    this.#input.off('end', this.#on.onHangup)
    this.#input.off('error', this.#on.onHangup)
    this.#output.off('resize', this.#resized)
    this.#input.pause()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Everything is painted anew with the next frame. */
  forget(): void {
    this.#shown = []
  }

  paint({ lines, cursor }: Frame): void {
    if (!this.#isOpen) return
    const changed = lines.flatMap((line, row) =>
      line === this.#shown[row] ? [] : [`\x1b[${row + 1};1H\x1b[0m${line}\x1b[0m\x1b[K`],
    )
    const first = this.#shown.length === 0 ? '\x1b[2J' : ''
    const place = cursor ? `\x1b[${cursor.row + 1};${cursor.column + 1}H\x1b[?25h` : ''
    this.#shown = [...lines]
    this.#output.write(`${BEGIN}${first}${changed.join('')}${place}${END}`)
  }

  readonly #resized = (): void => {
    this.#shown = []
    this.#on.onResize()
  }

  readonly #read = (bytes: Buffer): void => {
    clearTimeout(this.#escape)
    for (const key of this.#keys.read(bytes)) this.#on.onKey(key)
    if (!this.#keys.isWaiting) return
    this.#escape = setTimeout(() => {
      for (const key of this.#keys.flush()) this.#on.onKey(key)
    }, ESCAPE_MS)
  }

  /** Synchronous, so that it also works while the process ends. */
  #leave(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    try {
      this.#input.setRawMode(false)
    } catch {
      // The terminal is gone; there is nothing to give back.
    }
    for (let attempt = 0; attempt < 50; attempt++) {
      try {
        writeSync(STDOUT, LEAVE)
        return
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      }
    }
  }
}
