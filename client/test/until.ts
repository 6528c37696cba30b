/** Polls until `look` gives something truthy. The deadline only ends what hangs. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  deadline_ms = 30_000,
): Promise<Exclude<T, undefined | null | false>> {
  const end = Date.now() + deadline_ms
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== null && value !== false) {
      return value as Exclude<T, undefined | null | false>
    }
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`)
    await new Promise((resume) => setTimeout(resume, 10))
  }
}
