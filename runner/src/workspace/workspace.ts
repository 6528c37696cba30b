/** The files that a session works on, and how their state travels. */
import type { Attempts } from '../tools/attempts.ts'
import type { Stay } from '../tools/stay.ts'
import type { WorkspaceSettings } from './settings.ts'

/** The stored state of a workspace. Everything in it is a full git object id or name. */
export interface Checkpoint {
  /** `git`: a work tree of a repository. `folder`: files only, no HEAD, no branch. `virtual`: files that live in the session. */
  kind: 'git' | 'folder' | 'virtual'
  /** Commit of the work tree, untracked (not ignored) files included; its parent is `head`. */
  commit: string
  /** Tree of all files. It is the tree of `commit` unless ignored files are carried: then it is `files` in `state`. */
  tree: string
  /** HEAD of the session's branch. Empty: no commit yet, or a plain folder. */
  head: string
  /** Short name of the session's branch, without refs/heads/. Empty: detached, or a plain folder. */
  branch: string
  /** Commit of what git keeps beside the files (extras.ts); its first parent is `commit`. Absent: there is nothing of it. */
  state?: string | undefined
  /** What the person's config said where the session began, for machines that have no clone of theirs. */
  settings?: Pick<WorkspaceSettings, 'carry' | 'setup'> | undefined
}

/** Bytes to be read in pieces: a pack may be larger than memory. */
export interface Pieces {
  readonly bytes: number
  /** From the start on, each piece of at most `size` bytes. */
  pieces(size: number): AsyncIterable<Uint8Array>
}

/** A pack that lies in a file until it is discarded. */
export interface PackFile extends Pieces {
  discard(): Promise<void>
}

export interface WorkspaceAbout {
  path: string
  branch: string
  platform: string
}

export interface Workspace {
  /** Absolute path of the session's work tree. */
  root: string
  /** It is the person's own folder. */
  readonly inPlace?: boolean
  /**
   * Settles when the person's setup command has ended; tools wait for it. Never rejects; resolves with what to tell the
   * person. Absent: there is nothing to wait for.
   */
  ready?: Promise<string[]>
  /**
   * Stores the state. Undefined when nothing changed since the last checkpoint or restore.
   * Throws BatonError `workspace-missing`, `workspace-unreadable`, `disk-full`, `internal`.
   */
  checkpoint(): Promise<Checkpoint | undefined>
  /**
   * The journal holds this checkpoint: from now on what is in it counts as safe. Until then coming back to an earlier one first
   * keeps what is here (I11). Never rejects.
   */
  confirm?(checkpoint: Checkpoint): Promise<void>
  /**
   * What is here could not be stored: coming back to the checkpoint that was confirmed last leaves the files as they are, until
   * another one is confirmed. Never rejects.
   */
  hold?(): Promise<void>
  /** What the last checkpoint left behind, in sentences for the person; said once for each thing. */
  left?(): string[]
  /**
   * A git bundle of what `tip` (`state`, or else `commit`, of a checkpoint) needs beyond `since`, the tip of a checkpoint that
   * the reader has; without `since` the whole history. Throws as checkpoint does, and `too-large` beyond `bytes_max`.
   */
  pack(tip: string, since: string | undefined, bytes_max: number): Promise<PackFile>
  /** What calls do to the files before their outcome is durable. Absent: nothing of it outlives the runner. */
  readonly attempts?: Attempts
  /** Jobs, sandbox and servers that the session's tools have here. Ended before the last checkpoint. */
  stay?: Stay
  about(): Promise<WorkspaceAbout>
  /** Waits for what is under way, ends a setup command. Leaves work tree, branch and checkpoint in place. */
  close(): Promise<void>
}

/** The commit from which everything of a checkpoint can be reached. */
export function tipOf({ state, commit }: Pick<Checkpoint, 'state' | 'commit'>): string {
  return state ?? commit
}
