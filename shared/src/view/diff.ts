/** A line diff: longest common subsequence between the common start and end. Pure. */

export interface DiffLine {
  change: 'same' | 'added' | 'removed'
  text: string
}

/** Above this many cells the middle is shown as removed and added whole: correct, only longer. */
const CELLS_MAX = 1_000_000

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (
    end < a.length - start &&
    end < b.length - start &&
    a[a.length - 1 - end] === b[b.length - 1 - end]
  ) {
    end++
  }
  const same = (text: string): DiffLine => ({ change: 'same', text })
  return [
    ...a.slice(0, start).map(same),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ change: 'removed', text })
  const added = (text: string): DiffLine => ({ change: 'added', text })
  if (a.length * b.length > CELLS_MAX) return [...a.map(removed), ...b.map(added)]
  // common[i * width + j]: length of the longest common subsequence of a from i and b from j.
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  const at = (i: number, j: number): number => common[i * width + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    const left = a[i]
    const right = b[j]
    if (left !== undefined && left === right) {
      lines.push({ change: 'same', text: left })
      i++
      j++
    } else if (left !== undefined && (right === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(left))
      i++
    } else if (right !== undefined) {
      lines.push(added(right))
      j++
    }
  }
  return lines
}
