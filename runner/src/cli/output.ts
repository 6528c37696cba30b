/** What commands print: JSON for programs, text for people. */

export function print(json: boolean | undefined, data: unknown, text: string): void {
  process.stdout.write(`${json ? JSON.stringify(data) : text}\n`)
}

/** Aligned columns. */
export function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)))
  const line = (cells: string[]): string =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}
