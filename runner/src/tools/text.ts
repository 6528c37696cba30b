/** Text of results: decoded so that any bytes give valid text, and bounded so that a context is never flooded. */

/** Characters (UTF-16 units) of one result. About 8,000 tokens. */
export const RESULT_CHARS = 30_000
const LINE_CHARS = 2_000

/** Collects text of any length and keeps its beginning and end. */
export class HeadAndTail {
  readonly #limit: number
  #head = ''
  #tail = ''
  #total = 0

  constructor(limit = RESULT_CHARS) {
    this.#limit = limit
  }

  add(text: string): void {
    this.#total += text.length
    const room = this.#half - this.#head.length
    if (room > 0) {
      this.#head += text.slice(0, room)
      text = text.slice(room)
    }
    this.#tail += text
    if (this.#tail.length > this.#limit * 2) this.#tail = this.#tail.slice(-this.#half)
  }

  /** Characters left out. */
  get cut(): number {
    return Math.max(0, this.#total - this.#half * 2)
  }

  /** The text, with a line in the middle that says how much is missing. */
  toString(): string {
    if (this.cut === 0) return this.#head + this.#tail
    const head = this.#head.replace(/[\ud800-\udbff]$/, '')
    const tail = this.#tail.slice(-this.#half).replace(/^[\udc00-\udfff]/, '')
    const missing = this.#total - head.length - tail.length
    return `${head}\n… ${missing} characters left out …\n${tail}`
  }

  get #half(): number {
    return this.#limit >> 1
  }
}

/** A whole text, bounded as HeadAndTail does. */
export function bounded(text: string, limit = RESULT_CHARS): string {
  const collector = new HeadAndTail(limit)
  collector.add(text)
  return collector.toString()
}

/** A line, cut when it is very long. */
export function boundedLine(line: string, limit = LINE_CHARS): string {
  if (line.length <= limit) return line
  return `${line.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}… (${line.length - limit} more characters)`
}
