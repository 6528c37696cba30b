/** What a person most likely meant by a word that is not there. */

/** Edits (one letter more, less, other, or two swapped) from one word to the other. */
export function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (same ? 0 : 1))
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) least = Math.min(least, (before[j - 2] ?? 0) + 1)
      next.push(least)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}

/** The nearest of the words that are near enough; a beginning counts as near. */
export function nearest(word: string, words: readonly string[]): string | undefined {
  const far = word.length <= 3 ? 1 : 2
  const near = words
    .map((other) => ({ other, far: distance(word.toLowerCase(), other.toLowerCase()) }))
    .filter((found) => found.far <= far)
    .toSorted((a, b) => a.far - b.far)
  const begun = word.length >= 2 ? words.filter((other) => other.startsWith(word)) : []
  return near[0]?.other ?? (begun.length === 1 ? begun[0] : undefined)
}

/** ` Did you mean X?`, or nothing. */
export function meant(word: string, words: readonly string[], sign = ''): string {
  const found = nearest(word, words)
  return found === undefined ? '' : ` Did you mean ${sign}${found}?`
}
