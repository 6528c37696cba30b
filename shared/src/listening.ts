/** Why a program can not listen where it was told to. */
import { BatonError } from './errors.ts'

const REFUSALS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not use that port',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such name',
}

/** A failed `listen` as BatonError `port-taken` or `address-unusable`; any other cause as it is. */
export function listenError(cause: unknown, { host, port }: { host: string; port: number }): unknown {
  const { code } = (cause ?? {}) as { code?: unknown }
  if (code === 'EADDRINUSE') return new BatonError('port-taken', `(${port})`, { cause })
  const why = typeof code === 'string' ? REFUSALS[code] : undefined
  return why === undefined
    ? cause
    : new BatonError('address-unusable', `(${host}, port ${port}: ${why})`, { cause })
}
