/** Blots secrets out of text: as they are, and as JSON, URLs, Base64 and hexadecimal digits write them. */

/** What is shorter stands in any text. */
export const CHARS_MIN = 6
const BLOT = '•••'

/** Gives a function that returns a text without the secrets. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap((secret) => [secret, secret.trim()]).flatMap(formsOf)
  // A secret may begin with another one: the longest first, or its tail would stay.
  const wanted = [...new Set(forms)]
    .filter(({ length }) => length >= CHARS_MIN)
    .toSorted((a, b) => b.length - a.length)
  return (text) => wanted.reduce((kept, form) => kept.replaceAll(form, BLOT), text)
}

function formsOf(secret: string): string[] {
  if (secret.length < CHARS_MIN) return []
  const bytes = Buffer.from(secret, 'utf8')
  const hex = bytes.toString('hex')
  const url = encodeURIComponent(secret.toWellFormed())
  return [
    ...[secret, JSON.stringify(secret).slice(1, -1), hex, hex.toUpperCase()],
    ...[url, url.replaceAll('%20', '+'), url.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase())],
    ...[0, 1, 2].flatMap((before) => base64(bytes, before)),
  ]
}

/** The characters of Base64 that only the secret decides when `before` bytes stand before it; `user:secret`, say. */
function base64(bytes: Buffer, before: number): string[] {
  const padded = Buffer.concat([Buffer.alloc(before), bytes])
  const from = Math.ceil((before * 8) / 6)
  const to = Math.floor((padded.length * 8) / 6)
  return (['base64', 'base64url'] as const).map((encoding) => padded.toString(encoding).slice(from, to))
}
