/** The four functions that the host provides. In the guest they are a global, taken once; a test brings its own. */
export interface Host {
  /** Asks for an effect, given as JSON; returns at once. */
  ask(request: string): void
  /** Blocks until the outcome of an effect (or a resend of it) is there; returns that message as JSON. */
  block(effect: number): string
  /** Hex SHA-256 of a text in UTF-8. */
  sha256(text: string): string
  /** Says that the agent's main function has ended: `{"result": …}` or `{"error": {code, message}}`. */
  end(outcome: string): void
}

const global = globalThis as { __batonHost?: Host }
let current: Host | undefined = global.__batonHost
delete global.__batonHost

/** Is this the guest, as opposed to a test in some other runtime? */
export const inGuest = current !== undefined

export function useHost(host: Host): void {
  current = host
}

export function host(): Host {
  if (current === undefined) throw new Error('the module "baton" works only inside a guest')
  return current
}
