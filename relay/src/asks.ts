/** From an ask as it came over the wire to its handler. */
import { BatonError } from '@baton/shared/errors.ts'
import { ASKS, type AskGives, type AskName, type AskWith } from '@baton/shared/protocol.ts'
import * as v from 'valibot'
import { accountAsks } from './asks-account.ts'
import { runnerAsks } from './asks-runner.ts'
import { sessionAsks } from './asks-session.ts'
import type { Context } from './context.ts'
import type { Handler } from './handler.ts'
import type { SignedIn } from './peer.ts'

const HANDLERS: { [N in AskName]: Handler<N> } = { ...accountAsks, ...sessionAsks, ...runnerAsks }

/**
 * Validates and carries out. Throws BatonError: `unknown-message`, `bad-frame`, `too-large`, and the refusals that protocol.ts
 * names for the ask.
 */
export async function handleAsk(
  context: Context,
  peer: SignedIn,
  what: string,
  input: unknown,
): Promise<unknown> {
  if (!Object.hasOwn(ASKS, what)) throw new BatonError('unknown-message', `(${what.slice(0, 40)})`)
  return handle(context, peer, what as AskName, input)
}

async function handle<N extends AskName>(
  context: Context,
  peer: SignedIn,
  what: N,
  input: unknown,
): Promise<AskGives<N>> {
  const schema = ASKS[what].with as unknown as v.GenericSchema<unknown, AskWith<N>>
  return HANDLERS[what](context, peer, parse(schema, input, what))
}

/** Names what is wrong and where, never the value. */
export function parse<T>(schema: v.GenericSchema<unknown, T>, input: unknown, what: string): T {
  const parsed = v.safeParse(schema, input, { abortEarly: true })
  if (parsed.success) return parsed.output
  const issue = parsed.issues[0]
  const where = [what, v.getDotPath(issue)].filter((part) => part !== null).join('.')
  const tooLarge = issue.type === 'max_length'
  throw new BatonError(
    tooLarge ? 'too-large' : 'bad-frame',
    `(${where}: ${issue.expected ?? issue.type} expected)`,
  )
}
