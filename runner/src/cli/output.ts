/** What commands print: JSON for programs, text for people. */
import { cut, widthOf } from './term/text.ts'

const LAST_COLUMNS_MIN = 12

export function print(json: boolean | undefined, data: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(data) : text}\n`)
}

/** Aligned columns. The last one is cut to what room `columns` leave it; undefined: nothing is cut. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined = process.stdout.columns,
): string {
  const widths = head.map((title, i) => Math.max(widthOf(title), ...rows.map((row) => widthOf(row[i] ?? ''))))
  const taken = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const room = columns === undefined ? Infinity : Math.max(LAST_COLUMNS_MIN, columns - taken)
  const last = head.length - 1
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === last ? cut(cell, room) : filled(cell, widths[i] ?? 0)))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}

/** Filled with blanks to a width in columns. */
export function filled(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)))
}
