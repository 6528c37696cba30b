/** Gives sessions what their tools have on this machine besides files: background jobs, whose logs lie in the data folder. */
import { join } from 'node:path'
import { Jobs, sweepJobs } from '../jobs/jobs.ts'
import type { Workspace } from '../workspace/workspace.ts'
import type { RunnerOptions } from './runner.ts'

export interface EquipOptions {
  data: string
  /** The name of this runner, for ids of jobs. */
  name: string
}

export function equip(hands: RunnerOptions['hands'], { data, name }: EquipOptions): RunnerOptions['hands'] {
  sweepJobs(join(data, 'jobs'))
  const equipped = (workspace: Workspace, sid: string): Workspace => {
    const jobs = new Jobs(join(data, 'jobs', sid), name)
    return Object.assign(workspace, { stay: { jobs, end: () => jobs.end() } })
  }
  return {
    ...hands,
    openWorkspace: async (sid, ...where) => equipped(await hands.openWorkspace(sid, ...where), sid),
    restoreWorkspace: async (sid, ...what) => {
      const restored = await hands.restoreWorkspace(sid, ...what)
      return { ...restored, workspace: equipped(restored.workspace, sid) }
    },
  }
}
