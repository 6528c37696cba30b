/** Which addresses a session may reach: the public internet, not this machine and its networks. */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

/** Not for the public, RFC 6890 and its successors. */
const CLOSED = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  CLOSED.addSubnet(network, bits, 'ipv4')

/** Of IPv6 only global unicast is open (2000::/3), and of that neither tunnels nor documentation. */
const GLOBAL = new BlockList()
GLOBAL.addSubnet('2000::', 3, 'ipv6')
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  CLOSED.addSubnet(network, bits, 'ipv6')

/** Is it an address of the public internet? An IPv4 address within an IPv6 one counts as itself. */
export function isPublic(address: string): boolean {
  const inner = embedded(address)
  if (inner !== undefined) return isPublic(inner)
  if (isIPv4(address)) return !CLOSED.check(address, 'ipv4')
  if (isIPv6(address)) return GLOBAL.check(address, 'ipv6') && !CLOSED.check(address, 'ipv6')
  return false
}

/** The IPv4 address in ::ffff:a.b.c.d and in 64:ff9b::a.b.c.d, however it is written. */
function embedded(address: string): string | undefined {
  if (isIP(address) !== 6 || address.includes('%')) return undefined
  // The address of a URL is normalised: hexadecimal groups, the longest run of zeros left out.
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(plain) ?? []
  if (high === undefined || low === undefined) return undefined
  const bits = (parseInt(high, 16) << 16) | parseInt(low, 16)
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join('.')
}

/** Is a host, or a host with its port, among those that the config names? */
export function isAllowed(url: URL, allowed: readonly string[]): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return allowed.some((entry) => [host, `${host}:${port}`, `${url.hostname}:${port}`].includes(entry))
}
