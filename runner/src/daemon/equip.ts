/**
 * Gives sessions what their tools have on this machine besides files: background jobs, whose logs lie in the data folder, MCP
 * servers, and the sandbox that the config or the command line asks for. Opens virtual workspaces, which any runner can.
 */
import { homedir } from 'node:os'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { explain, type BatonError } from '@baton/shared/errors.ts'
import type { SandboxWish } from '@baton/shared/journal.ts'
import { CONFIG_FILES, type LoadedConfig } from '../config.ts'
import { Trust } from '../config/trust.ts'
import { Jobs, sweepJobs } from '../jobs/jobs.ts'
import { McpServers } from '../mcp/servers.ts'
import { givenVariables, variablesIn } from '../mcp/secrets.ts'
import { knownMcpTools, mcpTools } from '../mcp/tools.ts'
import type { Origin, RestoredWorkspace } from '../session/options.ts'
import { sandboxOf } from '../sandbox/bubblewrap.ts'
import { SANDBOX_DEFAULTS, type SandboxSettings } from '../sandbox/settings.ts'
import { boxedEnvironment, commandEnvironment } from '../tools/environment.ts'
import type { Stay, Surroundings } from '../tools/stay.ts'
import { ScratchTrees } from '../virtual/scratch.ts'
import { virtualTools } from '../virtual/tools.ts'
import { isVirtual, VirtualWorkspace, type VirtualKind } from '../virtual/workspace.ts'
import type { Checkpoint, Pieces, Workspace } from '../workspace/workspace.ts'
import type { RunnerOptions } from './runner.ts'

export interface EquipOptions {
  data: string
  /** The name of this runner, for ids of jobs. */
  name: string
  /** Workspace folders of this runner: whatever their configs give to servers reaches no command here. */
  folders: readonly string[]
  env: NodeJS.ProcessEnv
  /** Every command runs in the sandbox, whatever the config says. */
  sandbox: boolean
  configOf: ConfigOf
}

interface Wishes {
  wish?: SandboxWish
  /** Files, relative to the root, that commands in a sandbox can not change. */
  kept?: readonly string[]
}

/** The config that counts on this machine for sessions of a folder. `origin` absent: it begins here. */
export type ConfigOf = (folder: string, origin?: Origin) => Promise<LoadedConfig>

type Hands = RunnerOptions['hands']

export function equip(hands: Hands, options: EquipOptions): Hands {
  const { data, folders, env, configOf } = options
  const trust = new Trust(data, folders)
  sweepJobs(join(data, 'jobs'))
  const equipped = async (
    workspace: Workspace,
    sid: string,
    config: LoadedConfig,
    wish: SandboxWish | undefined,
  ): Promise<Workspace> => {
    // In place the agent works on the very files that are read for the next session.
    if (workspace.inPlace) await trust.begin(workspace.root)
    const kept = workspace.inPlace ? await trust.kept(workspace.root) : []
    const own = await stayOf(workspace.root, sid, config, { ...options, kept, ...(wish ? { wish } : {}) })
    const stay = workspace.inPlace ? { ...own, kept } : own
    return Object.assign(workspace, { stay })
  }
  const scratch = new ScratchTrees()
  return {
    ...hands,
    rules: async (folder, origin) => (isVirtual(folder) ? [] : hands.rules(folder, origin)),
    tools: async (folder, how) => {
      if (isVirtual(folder)) return virtualTools(folder)
      const { known, origin, root = folder, tell } = how
      const { mcp, folder: own = folder } = await configOf(folder, origin)
      const tools = await hands.tools(folder, how)
      const servers = known
        ? knownMcpTools(mcp, known)
        : await mcpTools(mcp, { place: { folder: own, root, empty: join(data, 'mcp/offers') }, env, tell })
      return [...tools, ...servers]
    },
    openWorkspace: async (sid, folder, settings, wish) => {
      if (isVirtual(folder)) return openVirtual(folder, sid, scratch)
      const workspace = await hands.openWorkspace(sid, folder, settings, wish)
      return equipped(workspace, sid, await configOf(folder), wish)
    },
    restoreWorkspace: async (sid, folder, checkpoint, packs, wish) => {
      if (isVirtual(folder)) return told(await restoreVirtual(folder, sid, scratch, checkpoint, packs))
      const { workspace, notices } = await hands.restoreWorkspace(sid, folder, checkpoint, packs, wish)
      const origin = { sid, checkpoint, arrived: Promise.resolve(workspace) }
      return told(await equipped(workspace, sid, await configOf(folder, origin), wish), notices)
    },
  }
}

function told(workspace: Workspace, notices: readonly string[] = []): RestoredWorkspace {
  return { workspace, notices: [...notices, ...(workspace.stay?.notices ?? [])] }
}

function openVirtual(kind: VirtualKind, sid: string, scratch: ScratchTrees): VirtualWorkspace {
  return kind === 'virtual' ? VirtualWorkspace.open() : VirtualWorkspace.scratch(scratch.of(sid), [SCRATCH])
}

async function restoreVirtual(
  kind: VirtualKind,
  sid: string,
  scratch: ScratchTrees,
  checkpoint: Checkpoint,
  packs: readonly Pieces[],
): Promise<VirtualWorkspace> {
  if (kind === 'virtual') return VirtualWorkspace.restore(checkpoint, packs)
  const own = scratch.of(sid)
  return VirtualWorkspace.scratch(own, own.tree(checkpoint.commit) ? [] : [SCRATCH_GONE], checkpoint.commit)
}

const SCRATCH =
  'Scratch files are not stored: they are gone when the session leaves this machine or its runner ends.'
const SCRATCH_GONE =
  'The scratch files are gone: they were not stored, and the session has left the machine that had them.'

async function stayOf(
  root: string,
  sid: string,
  config: LoadedConfig,
  options: EquipOptions & Wishes,
): Promise<Stay> {
  const { data, name, env } = options
  const jobs = new Jobs(join(data, 'jobs', sid), name)
  const empty = join(data, 'mcp', sid)
  const mcp = new McpServers({ folder: config.folder ?? empty, root, empty }, env)
  const { missing, ...surroundings } = await surroundingsOf(root, config, options)
  return {
    ...{ ...surroundings, jobs, mcp, fetchAllowed: config.fetchAllowed },
    ...(missing ? { notices: [explain(missing)] } : {}),
    end: async () => void (await Promise.all([jobs.end(), mcp.end()])),
  }
}

/**
 * What commands run in, the person's set-up included. `wish`: what the session began with, which counts also where this machine has
 * no config that says so. `missing`: why they are refused.
 */
export async function surroundingsOf(
  root: string,
  config: LoadedConfig,
  options: Omit<EquipOptions, 'name' | 'configOf'> & Wishes,
): Promise<Surroundings & { missing?: BatonError }> {
  const { data, folders, env, sandbox, wish, kept = [] } = options
  const withheld = new Set([...givenVariables(config.mcp, env), ...(await givenBy(folders))])
  const settings = wanted(sandbox, config.sandbox, wish)
  if (!settings) return { env: commandEnvironment(env, withheld) }
  const where = { root, data, home: env['HOME'] ?? homedir(), path: env['PATH'] ?? '' }
  const box = await sandboxOf({ settings, ...where, kept: kept.map((path) => join(root, path)) })
  const own = boxedEnvironment(env, settings.env, withheld)
  return {
    env: own,
    enclosure: box,
    sandbox: { network: settings.network },
    ...(box.missing ? { missing: box.missing } : {}),
  }
}

/** Names of variables to which configs refer. Their text is searched: a config runs only for sessions of its own folder. */
async function givenBy(folders: readonly string[]): Promise<string[]> {
  const files = folders.flatMap((folder) => CONFIG_FILES.map((name) => join(folder, name)))
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => '')))
  return texts.flatMap(variablesIn)
}

/** Why commands would be refused here although a sandbox is asked for. `folder`: any on this machine. */
export async function objectionToSandbox(
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<BatonError | undefined> {
  const settings = SANDBOX_DEFAULTS
  const where = { root: folder, data: folder, home: env['HOME'] ?? homedir(), path: env['PATH'] ?? '' }
  return (await sandboxOf({ settings, ...where })).missing
}

/** The config may say what is allowed in the sandbox, not turn off what the command line or the session's beginning asked for. */
function wanted(
  flag: boolean,
  config: SandboxSettings,
  wish: SandboxWish | undefined,
): Exclude<SandboxSettings, boolean> | undefined {
  const here = typeof config === 'object' ? config : flag || config ? SANDBOX_DEFAULTS : undefined
  if (!wish) return here
  return here ? { ...here, network: here.network && wish.network } : { ...SANDBOX_DEFAULTS, ...wish }
}
