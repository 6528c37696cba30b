/** What tests of copied sessions share: how one is copied, and what is waited for. */
import { readCopy } from '@baton/shared/copy-read.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { SessionMeta } from '@baton/shared/journal.ts'
import { copyPlace, startCopy } from '@baton/runner/cli/copying.ts'
import type { Loop } from './loop.ts'
import { emit, prompt, resultOf, tool } from './script-asks.ts'
import type { Program } from './script-harness.ts'

export const META: SessionMeta = { title: 'test', agent: 'script', mode: 'ask', workspace: '/w' }

/** Copies a session as it stands, to a runner. */
export async function fork(loop: Loop, sid: string, prefer: string): Promise<string> {
  const from = copyPlace(loop.client, sid)
  return (await startCopy(loop.client, { prefer }, () => readCopy(from, META))).sid
}

export const effectsOf = (entries: Opened[], kind: 'intent' | 'outcome', effect: number): Opened[] =>
  entries.filter((entry) => entry.kind === kind && entry.body.effect === effect)
export const hasOutcome = (effect: number) => (entries: Opened[]) =>
  effectsOf(entries, 'outcome', effect).length > 0
export const hasIntent = (effect: number) => (entries: Opened[]) =>
  effectsOf(entries, 'intent', effect).length > 0
/** Its files are stored, so it can be copied. */
export const isStored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')

/** Tells every prompt, for ever. */
export const echo: Program = function* () {
  yield {}
  for (let effect = 1; ; effect += 3) {
    const message = yield { ask: [prompt(effect)] }
    yield { ask: [emit(effect + 1, resultOf(message)), tool(effect + 2, 'look')] }
  }
}
