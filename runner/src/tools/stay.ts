/** What the tools of a session have on this runner besides its files, for as long as the session stays here. */
import type { SandboxWish } from '@baton/shared/journal.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { SessionFiles } from './session-files.ts'
import type { McpServers } from '../mcp/servers.ts'

/** How a command line is started: as it is, or inside a sandbox. */
export interface Enclosure {
  /** Gives the program and arguments to start instead. Throws BatonError `sandbox-missing`. */
  wrap(program: string, args: string[]): { program: string; args: string[] }
}

/** What commands of a session run in on this runner. */
export interface Surroundings {
  /** Their environment: without secrets, and in a sandbox only what is named. */
  env: Record<string, string>
  /** Absent: they run as they are. */
  enclosure?: Enclosure
  /** What it allows, as other runners have to know it. */
  sandbox?: SandboxWish
}

export interface Stay extends Partial<Surroundings> {
  /** What to tell people when the session begins here. */
  notices?: readonly string[]
  jobs?: Jobs
  mcp?: McpServers
  /** Files, relative to the root, that no tool writes: what is in them would run unasked. */
  kept?: readonly string[]
  /** Absent: the files are on the disk. */
  files?: SessionFiles
  /** Hosts, or `host:port`, that `fetch` may reach although they are not public. */
  fetchAllowed?: readonly string[]
  /** Ends whatever still runs. Called before the files are stored for the last time, and when the session has left. */
  end(): Promise<void>
}
