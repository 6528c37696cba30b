/** How the runner of this machine is called. */
import { loadRelay } from '../daemon/identity.ts'
import { defaultName } from '../daemon/runner.ts'

/** As told now, else as told before, else as the machine. Throws BatonError `data-folder`. */
export async function runnerName(data: string, told: string | undefined): Promise<string> {
  return told ?? (await loadRelay(data))?.about?.name ?? defaultName()
}
