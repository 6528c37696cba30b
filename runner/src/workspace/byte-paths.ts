/**
 * Paths as git knows them: bytes, not characters. A string holds one byte in each of its characters (latin1), so that a name
 * that is not UTF-8 travels unharmed; only what a person or a command line is to see becomes text.
 */

/** Splits output of `git … -z`. */
export function splitPaths(output: Buffer): string[] {
  return output
    .toString('latin1')
    .split('\0')
    .filter((path) => path !== '')
}

/** Input for `git … -z --stdin`. */
export function joinPaths(paths: Iterable<string>): Buffer {
  return Buffer.from(Array.from(paths, (path) => `${path}\0`).join(''), 'latin1')
}

/** A path below `root` for the file system. */
export function fullPath(root: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(root), Buffer.from('/'), Buffer.from(path, 'latin1')])
}

/** For people. */
export function shownPath(path: string): string {
  return Buffer.from(path, 'latin1').toString('utf8')
}

/** Is it UTF-8, so that it can stand on a command line? */
export function isText(path: string): boolean {
  return bytePath(shownPath(path)) === path
}

/** The bytes of text. */
export function bytePath(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const SHOWN_MAX = 8

/** The first few of many paths, for a sentence. */
export function listPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, SHOWN_MAX).map((path) => JSON.stringify(shownPath(path)).slice(1, -1))
  const more = paths.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
