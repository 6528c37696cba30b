/** Puts together what sessions need on this machine: engine, agents, model, tools, workspaces. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { NO_CONFIG } from '../config.ts'
import { Trust } from '../config/trust.ts'
import { createModel } from '../model/index.ts'
import { builtinTools } from '../tools/index.ts'
import type { Surroundings } from '../tools/stay.ts'
import { GuestHarness } from '../vm/guest-harness.ts'
import { openWorkspace } from '../workspace/open.ts'
import { restoreWorkspace } from '../workspace/restore.ts'
import { DEFAULT_SETTINGS, placeOf, type WorkspaceSettings } from '../workspace/settings.ts'
import type { Checkpoint, Workspace } from '../workspace/workspace.ts'
import { equip, surroundingsOf, type ConfigOf } from './equip.ts'
import { OwnFolders } from './own-folder.ts'
import { defaultName, type RunnerOptions } from './runner.ts'

interface HandsOptions {
  data: string
  /** Workspace folders of this runner, absolute. */
  folders: string[]
  env: NodeJS.ProcessEnv
  /** The name of this runner, as ids of jobs carry it. */
  name?: string
  /** Commands run in a sandbox, whatever configs say. */
  sandbox?: boolean
  park_after_ms: number
  finish_within_ms: number
}

const BUILT = fileURLToPath(new URL('../../../guest/dist', import.meta.url))
/** An agent's name is a file name without any path in it. */
const AGENT_NAME = /^[a-z][a-z0-9-]*$/

export async function createHands({
  data,
  folders,
  env,
  name = defaultName(),
  sandbox = false,
  ...times
}: HandsOptions): Promise<RunnerOptions['hands']> {
  const engine = await readBuilt('engine.wasm')
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseUrl, BATON_MODEL: model } = env
  const own = new OwnFolders(folders, data)
  const trust = new Trust(data, folders)
  const configOf: ConfigOf = async (folder, origin) => {
    const counts = await own.of(folder, origin)
    if (counts === undefined) return NO_CONFIG
    // A session that began before goes on with what its journal says.
    return trust.load(counts).catch((error: unknown) => {
      if (!origin || !isRefusal(error)) throw error
      return { ...NO_CONFIG, refused: error }
    })
  }

  const settingsOf = async (folder: string, checkpoint: Checkpoint): Promise<WorkspaceSettings> => {
    const config = await trust.load(folder).catch((error: unknown) => {
      if (!isRefusal(error)) throw error
    })
    return config?.workspace ?? { ...DEFAULT_SETTINGS, ...checkpoint.settings }
  }

  const here = { data, folders, env, sandbox }

  const hands: RunnerOptions['hands'] = {
    ...times,
    model: createModel({
      ...(apiKey ? { apiKey } : {}),
      ...(baseUrl ? { baseUrl } : {}),
      ...(model ? { model } : {}),
    }),
    agent: (name) => {
      if (!AGENT_NAME.test(name)) throw new BatonError('agent-invalid', `(${JSON.stringify(name)})`)
      return readBuilt(join('agents', `${name}.js`))
    },
    engine: { hash: sha256Hex(engine), bytes: engine },
    harness: (bundle, other = engine) => new GuestHarness({ engine: other, bundle }),
    tools: async (folder, { origin, tell }) => {
      const { tools, refused } = await configOf(folder, origin)
      if (refused) tell(explain(refused))
      return [...builtinTools(), ...tools]
    },
    rules: async (folder, origin) => (await configOf(folder, origin)).rules,
    openWorkspace: async (sid, folder, settings, wish) => {
      if (!folders.includes(folder))
        throw new BatonError('workspace-missing', `(${folder} is not served by this runner)`)
      const all = await trust.load(folder)
      const { workspace: config } = all
      const place = placeOf(settings) ?? config.place
      const wished = { ...here, ...(wish ? { wish } : {}) }
      const surroundings = ({ root }: Workspace): Promise<Surroundings> => surroundingsOf(root, all, wished)
      const options = { folder, data, sid, settings: { ...config, place }, surroundings }
      return (await openWorkspace(options)).workspace
    },
    restoreWorkspace: async (sid, folder, checkpoint, packs, wish) => {
      const likely = await own.likely(folder, sid, checkpoint)
      const clone =
        likely === undefined ? {} : { folder: likely, settings: () => settingsOf(likely, checkpoint) }
      const surroundings = async (workspace: Workspace): Promise<Surroundings> => {
        const origin = { sid, checkpoint, arrived: Promise.resolve(workspace) }
        const wished = { ...here, ...(wish ? { wish } : {}) }
        return surroundingsOf(workspace.root, await configOf(folder, origin), wished)
      }
      return restoreWorkspace({ data, sid, packs, checkpoint, surroundings, ...clone })
    },
  }
  return equip(hands, { ...here, name, configOf })
}

function isRefusal(error: unknown): error is BatonError {
  return error instanceof BatonError && (error.code === 'config-changed' || error.code === 'config-invalid')
}

async function readBuilt(name: string): Promise<Uint8Array> {
  try {
    return await readFile(join(BUILT, name))
  } catch (cause) {
    throw new BatonError('agent-invalid', `(${name} is not built; run: npm run build)`, { cause })
  }
}
