/** A number of bytes for people. */
export function megabytes(bytes: number): string {
  return bytes >= 1 << 30 ? `${(bytes / 2 ** 30).toFixed(1)} GB` : `${Math.ceil(bytes / 2 ** 20)} MB`
}
