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
      // Some file systems do not tell upper case from lower case, nor how a letter is put together.
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

const lower = (part: string): string => part.normalize('NFC').toLowerCase()

const startsWith = (parts: string[], beginning: string[]): boolean =>
  beginning.every((part, i) => parts[i] === part)

/** Does the sequence occur anywhere? An absolute path may lead into the workspace. */
const holds = (parts: string[], wanted: string[]): boolean =>
  parts.some((_part, i) => startsWith(parts.slice(i), wanted))

/** An address; a prefix is one as well, or a host, with or without a port and a folder. */
export function urlPlace(text: string): Place {
  const url = parsed(text)
  return {
    // Some servers take an encoded slash for one, and what is encoded twice for what it stands for.
    isSurelyUnder: (prefix) => {
      const wanted = wantedBy(prefix)
      if (!url || !wanted || /%2f|%5c|%25/i.test(text)) return false
      const { scheme, place } = wanted
      if (scheme ? url.origin !== place.origin : url.hostname !== place.hostname) return false
      if (!scheme && place.port !== '' && url.port !== place.port) return false
      return startsWith(partsOf(url.pathname), partsOf(place.pathname))
    },
    mayBeUnder: (prefix) => {
      const wanted = wantedBy(prefix)
      if (!url || !wanted) return true
      return hostOf(url) === hostOf(wanted.place) && startsWith(plainParts(url), plainParts(wanted.place))
    },
  }
}

const parsed = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined)

/** `scheme`: the prefix says which one, and so which port. */
function wantedBy(prefix: string): { scheme: boolean; place: URL } | undefined {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(prefix)
  // http, so that a port that is named stays, but for its own.
  const place = parsed(scheme ? prefix : `http://${prefix}`)
  return place && { scheme, place }
}

/** A dot behind the name leads to the same host. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/\.+$/, '')

/** Parts of a path as a server may take them: decoded, without parameters, in small letters. */
function plainParts({ pathname }: URL): string[] {
  let path = pathname
  for (let i = 0; i < DECODED_MAX && path.includes('%'); i++) path = decoded(path)
  return partsOf(path).map((part) => lower(part.replace(/;.*$/s, '')))
}

const DECODED_MAX = 5

/** What can't be decoded stays as it is. */
const decoded = (path: string): string =>
  path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (code) => {
    try {
      return decodeURIComponent(code)
    } catch {
      return code
    }
  })
