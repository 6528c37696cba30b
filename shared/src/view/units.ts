/** Times and sizes for people. Pure. */

/** `4 ms`, `1.2 s`, `3 min`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const minutes = Math.round(ms / 60_000)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `812 B`, `41 KB`, `1.3 MB`, `8.0 GB`; 1 KB is 1024 bytes. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  if (bytes < 1 << 20) return `${Math.round(bytes / 1024)} KB`
  if (bytes < 2 ** 30) return `${(bytes / 2 ** 20).toFixed(1)} MB`
  return `${(bytes / 2 ** 30).toFixed(1)} GB`
}

/** How long ago, coarse: `now`, `5 min`, `3 h`, `2 d`. */
export function ago(then: number, now: number): string {
  const minutes = Math.floor((now - then) / 60_000)
  if (minutes < 1) return 'now'
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h` : `${Math.floor(hours / 24)} d`
}

/** How long ago, as words in a line: `just now`, `5 min ago`. */
export function agoWords(then: number, now: number): string {
  const coarse = ago(then, now)
  return coarse === 'now' ? 'just now' : `${coarse} ago`
}

/** The folder's own name: `shop` of `/home/ada/shop`. */
export function lastPart(path: string): string {
  return path.split('/').findLast((part) => part !== '') ?? path
}
