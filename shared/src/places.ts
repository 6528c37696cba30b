/** Paths and addresses as permission rules compare them: brought into one form first, as whoever uses them does. */

export interface Place {
  /** For what allows: beyond doubt. */
  isSurelyUnder: (prefix: string) => boolean
  /** For what forbids: in doubt, yes. */
  mayBeUnder: (prefix: string) => boolean
}

/** A path of the workspace. `access` tells whether a folder stands for all that is in it. */
export function pathPlace(path: string, access: 'read' | 'edit' | 'run'): Place {
  const isAbsolute = path.startsWith('/')
  const parts = partsOf(path)
  const climbs = path.split(/[\\/]/).includes('..')
  return {
    isSurelyUnder: (prefix) => !isAbsolute && !climbs && startsWith(parts, partsOf(prefix)),
    mayBeUnder: (prefix) => {
      // Some file systems do not tell upper case from lower case.
      const [own, wanted] = [parts.map(lower), partsOf(prefix).map(lower)]
      if (startsWith(own, wanted) || (isAbsolute && holds(own, wanted))) return true
      if (climbs && own[0] === '..') return true
      return access === 'read' && startsWith(wanted, own)
    },
  }
}

/** Without empty parts and `.`, and with `..` taken back as far as it goes. */
function partsOf(path: string): string[] {
  const parts: string[] = []
  for (const part of path.split(/[\\/]+/)) {
    if (part === '' || part === '.') continue
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop()
    else parts.push(part)
  }
  return parts
}

const lower = (part: string): string => part.toLowerCase()

const startsWith = (parts: string[], beginning: string[]): boolean =>
  beginning.every((part, i) => parts[i] === part)

/** Does the sequence occur anywhere? An absolute path may lead into the workspace. */
const holds = (parts: string[], wanted: string[]): boolean =>
  parts.some((_part, i) => startsWith(parts.slice(i), wanted))

/** An address; a prefix is one as well, or the name of a host. */
export function urlPlace(text: string): Place {
  const url = parsed(text)
  const under = (prefix: string, sameOrigin: boolean): boolean => {
    const wanted = parsed(prefix)
    if (!url) return false
    if (!wanted) return url.hostname === prefix.toLowerCase()
    const sameHost = sameOrigin ? url.origin === wanted.origin : url.hostname === wanted.hostname
    return sameHost && startsWith(partsOf(url.pathname), partsOf(wanted.pathname))
  }
  return {
    // Some servers take an encoded slash for one.
    isSurelyUnder: (prefix) => !/%2f|%5c/i.test(text) && under(prefix, true),
    mayBeUnder: (prefix) => !url || under(prefix, false),
  }
}

const parsed = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)
