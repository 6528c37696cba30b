/** Notices that this machine's addresses changed: another network, a cable, or Wi-Fi that is back (F9). */
import { networkInterfaces } from 'node:os'

const EVERY_MS = 2_000

type Interfaces = ReturnType<typeof networkInterfaces>

/** The addresses by which others can be reached, as one text. */
function addressesOf(interfaces: Interfaces): string {
  return Object.entries(interfaces)
    .flatMap(([name, addresses = []]) =>
      addresses.filter(({ internal }) => !internal).map(({ address }) => `${name} ${address}`),
    )
    .toSorted()
    .join('\n')
}

/** Calls `changed` when there are other addresses than before, and some. Gives what ends it. */
export function watchNetwork(changed: () => void, look: () => Interfaces = networkInterfaces): () => void {
  const read = (): string => {
    try {
      return addressesOf(look())
    } catch {
      // Some systems do not tell.
      return ''
    }
  }
  let last = read()
  const timer = setInterval(() => {
    const now = read()
    const isNew = now !== last && now !== ''
    last = now
    if (isNew) changed()
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
