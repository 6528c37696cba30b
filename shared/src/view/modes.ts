/** What the modes are called, and what each means, in one line. */
import type { Mode } from '../guest.ts'

export const MODES: readonly { mode: Mode; name: string; means: string }[] = [
  { mode: 'plan', name: 'Plan', means: 'Looks, and makes a plan. Changes nothing.' },
  { mode: 'ask', name: 'Ask first', means: 'Looks by itself. Asks before each change and each command.' },
  { mode: 'edit', name: 'Edit files', means: 'Also changes files of the workspace. Asks before commands.' },
  { mode: 'full', name: 'Full access', means: 'Changes and runs everything without asking.' },
]

export function modeName(mode: Mode): string {
  return MODES.find((other) => other.mode === mode)?.name ?? mode
}

export function modeMeans(mode: Mode): string {
  return MODES.find((other) => other.mode === mode)?.means ?? ''
}
