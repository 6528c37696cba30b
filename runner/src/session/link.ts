/** What a session needs of the connection to the relay. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import type { EngineStore } from '@baton/shared/engines.ts'
import type { AskGives, AskName, AskWith, PeerFrame } from '@baton/shared/protocol.ts'

export interface RelayLink {
  ask<N extends AskName>(what: N, with_: AskWith<N>): Promise<AskGives<N>>
  tell(frame: Extract<PeerFrame, { t: 'delta' }>): void
  /** Resolves when the connection is open (at once if it is). Rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>
  readonly blobs: BlobStore
  /** Engines that the account has stored. */
  readonly engines?: EngineStore
}
