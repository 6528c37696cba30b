/** The files that a session works on, and how their state travels. */

/** The stored state of a workspace. Everything in it is a full git object id or name. */
export interface Checkpoint {
  /** Commit of the whole work tree, untracked (not ignored) files included; its parent is `head`. */
  commit: string
  /** Tree of `commit`. */
  tree: string
  /** HEAD of the session's branch. */
  head: string
  /** Short name of the session's branch, without refs/heads/. */
  branch: string
}

export interface WorkspaceAbout {
  path: string
  branch: string
  platform: string
}

export interface Workspace {
  /** Absolute path of the session's work tree. */
  root: string
  /**
   * Stores the state. Undefined when nothing changed since the last checkpoint or restore (same tree, head and branch).
   * Throws BatonError `workspace-missing`, `disk-full`, `internal`.
   */
  checkpoint(): Promise<Checkpoint | undefined>
  /**
   * A git bundle of what `commit` needs beyond `since`, a checkpoint commit that the reader has; without `since` the whole
   * history of `commit`. Throws as checkpoint does.
   */
  pack(commit: string, since: string | undefined): Promise<Uint8Array>
  about(): Promise<WorkspaceAbout>
  /** Waits for what is under way. Leaves work tree, branch and checkpoint in place. */
  close(): Promise<void>
}
