/** What a session needs of the runner that holds it. */
import type { ToolSpec } from '@baton/shared/guest.ts'
import type { Account } from '@baton/shared/keys.ts'
import type { AskGives } from '@baton/shared/protocol.ts'
import type { Harness } from '../harness.ts'
import type { Model } from '../model/model.ts'
import type { Tool } from '../tools/tool.ts'
import type { Pieces, Workspace } from '../workspace/workspace.ts'
import type { CheckpointEntry, Rule, SandboxWish, StartCommand } from '@baton/shared/journal.ts'
import type { RelayLink } from './link.ts'

export interface RestoredWorkspace {
  workspace: Workspace
  /** What the person should know: where changes found here are kept (I11), what could not be as it was. */
  notices?: string[]
}

/** Where a session came from that did not begin in this stay. */
export interface Origin {
  sid: string
  /** The newest one. Absent: its runner ended before anything was stored, and that was this one. */
  checkpoint: CheckpointEntry | undefined
  /** Its files, which may still be on their way. */
  arrived: Promise<Workspace>
}

export interface SessionOptions {
  link: RelayLink
  account: Account
  /** This runner's device id. */
  device: string
  /** Pool tags that it serves. */
  tags: readonly string[]
  isRevoked: (device: string) => boolean
  model: Model
  /** The bundle of a built-in agent. Throws BatonError `agent-invalid` for an unknown name. */
  agent: (name: string) => Promise<Uint8Array>
  /** `engine`: another one than this runner's own. */
  harness: (bundle: Uint8Array, engine?: Uint8Array) => Harness
  /** This runner's own; absent: sessions of others are refused by the harness. */
  engine?: { hash: string; bytes: Uint8Array }
  /**
   * Tools for sessions of a workspace folder, or of what stands for it on this runner. `known`: the specs that a session which began
   * elsewhere has. `tell` is for people: what could not be had. `origin` absent: the session begins here, in `root`.
   */
  tools: (
    folder: string,
    how: { known?: readonly ToolSpec[]; origin?: Origin; root?: string; tell: (text: string) => void },
  ) => Promise<Tool[]>
  /** Permission rules of that folder's config. */
  rules: (folder: string, origin?: Origin) => Promise<Rule[]>
  /**
   * `settings`: of the start command; its `place`, `worktree` or `in-place`, comes before the config's.
   * `sandbox`: of a session that has begun already; this runner may restrict it further, never do without.
   * Throws BatonError `workspace-missing`, `workspace-not-git`, `workspace-in-use`, `workspace-unfit`, `bad-input`.
   */
  openWorkspace: (
    sid: string,
    folder: string,
    settings?: StartCommand['settings'],
    sandbox?: SandboxWish,
  ) => Promise<Workspace>
  restoreWorkspace: (
    sid: string,
    folder: string,
    checkpoint: CheckpointEntry,
    packs: Pieces[],
    sandbox?: SandboxWish,
  ) => Promise<RestoredWorkspace>
  /** How long a session may rest before it parks, and how long a planned move waits for running effects. */
  park_after_ms: number
  finish_within_ms: number
  /** Others wait for room on this runner: a session that rests parks at once. */
  isCrowded?: () => boolean
  /** First pause before a model call is tried again; it doubles. Default: one second. */
  retry_base_ms?: number
  log: (sid: string, message: string) => void
  /** False: people were told this of the session when it was tried here last. Absent: everything is news. */
  isNews?: (sid: string, words: string) => boolean
}

export type Lease = AskGives<'claim'> & { sid: string }

/**
 * How a session left this runner. `unfit`: it can't be restored here; another runner may be able to. `later`: it could not be now. `fallen`: the thread
 * of its guest died; it goes on from its last snapshot, wherever there is room.
 */
export type Ending = 'parked' | 'handed-off' | 'ended' | 'lost' | 'unfit' | 'later' | 'fallen'
