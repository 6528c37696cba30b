/** A short piece of work as scripted runners play it: read, edit, ask for a command; then the same on another runner. */
import type { ScriptedRunner } from './scripted-runner.ts'

const WHOLE_COMMAND = 'npm test -- --run prices'

/** Takes the new session, works, and waits for the approval of a command. */
export async function task(runner: ScriptedRunner, command = WHOLE_COMMAND): Promise<string> {
  const sid = await runner.take()
  await runner.receive(sid, 'start')
  await runner.receive(sid, 'prompt')
  await runner.say(
    sid,
    await runner.think(sid),
    'I’ll look at how totals are summed. The rounding in `src/prices.ts` is the first suspect.',
  )
  const grep = await runner.call(sid, 'grep', { pattern: 'round\\(', path: 'src' })
  await runner.did(
    sid,
    grep,
    'src/prices.ts:4:  lines.reduce((sum, line) => sum + round(line.price * line.count, 2), 0)',
    { lines: 1 },
    12,
  )
  const read = await runner.call(sid, 'read', { path: 'src/prices.ts' })
  await runner.did(sid, read, '1\tinterface Line { price: number; count: number }', { lines: 9 }, 3)
  await runner.say(
    sid,
    await runner.think(sid),
    'Each line is rounded before it is summed, so the error grows with the number of lines.',
  )
  const edit = await runner.call(sid, 'edit', {
    path: 'src/prices.ts',
    old_string: '  lines.reduce((sum, line) => sum + round(line.price * line.count, 2), 0)',
    new_string: '  round(lines.reduce((sum, line) => sum + line.price * line.count, 0), 2)',
  })
  await runner.did(sid, edit, 'Edited src/prices.ts: one replacement.', { replacements: 1 }, 5)
  await runner.ask(sid, 'bash', { command })
  return sid
}

/** Carries out the move that waits in the inbox: lets go here, goes on there. */
export async function moved(from: ScriptedRunner, to: ScriptedRunner, sid: string): Promise<void> {
  await from.receive(sid, 'move')
  const effects = from.effectsOf(sid)
  const zeros = '0'.repeat(64)
  await from.append(sid, 'snapshot', {
    chain: [],
    bytes: 41 << 10,
    state: 'quiescent',
    covers: 1,
    undelivered: [],
    start: 1,
    asked: 0,
    open: [],
    previous: 0,
    approvals: [],
    mode: { value: 'ask', revision: 0 },
    rules: [],
    agent: { name: 'coder', engine: zeros, bundle: zeros, baseline: zeros, bundle_blob: zeros },
  })
  await from.release(sid, 'moving', { prefer: to.device.id })
  await to.take(sid)
  to.held.get(sid)!.effects = effects
}

export const PLAN = `## Totals

Each line is rounded before it is summed. I would

1. sum first and round once, in \`src/prices.ts\`;
2. add a test with totals above 100;
3. run the whole suite.

Nothing else changes.`

export const TODOS = [
  { text: 'Sum first, round once', state: 'done' },
  { text: 'Test totals above 100', state: 'doing' },
  { text: 'Run the whole suite', state: 'open' },
]

export const SETTINGS_SCHEMA = {
  type: 'object',
  required: ['title', 'rounds'],
  properties: {
    title: { type: 'string', title: 'Title' },
    rounds: { type: 'integer', title: 'Rounds', description: 'How often it may try.' },
    strict: { type: 'boolean', title: 'Strict' },
    level: { enum: ['low', 'high'], title: 'Level' },
    files: { type: 'array', items: { type: 'string' }, title: 'Files' },
  },
}
