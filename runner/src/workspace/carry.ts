/** Which ignored files travel: the `carry` list of baton.config.ts. */
import { bytePath } from './byte-paths.ts'

/** Pathspecs for git. A path without wildcards names a file or a folder with all that is in it. */
export function carryPatterns(carry: readonly string[]): string[] {
  return carry.map((path) => (/[*?[]/.test(path) ? `:(glob)${path}` : `:(literal)${path}`))
}

/** `.env` files hold secrets: one travels only when it is named, not when a pattern or a folder happens to cover it. */
export function mayCarry(path: string, carry: readonly string[]): boolean {
  if (path !== '.env' && !path.endsWith('/.env')) return true
  return carry.some((named) => bytePath(named) === path)
}
