/** What carries out one kind of ask. Throws BatonError; its code becomes the refusal. */
import type { AskGives, AskName, AskWith } from '@baton/shared/protocol.ts'
import type { Context } from './context.ts'
import type { SignedIn } from './peer.ts'

export type Handler<N extends AskName> = (
  context: Context,
  peer: SignedIn,
  ask: AskWith<N>,
) => Promise<AskGives<N>>
