/** Scripts of the model server by name, for when it runs as a process of its own. */
import type { Json } from '@baton/shared/guest.ts'
import type { Script } from './model-turns.ts'
import {
  attempts,
  call,
  cut,
  hold,
  rawCall,
  redacted,
  refuse,
  say,
  stopFor,
  think,
  turnIndex,
} from './model-turns.ts'
import { SHOWCASE_TURNS } from './showcase.ts'

export const SCRIPTS: Record<string, Script> = {
  /** One answer in a few pieces. */
  hello: [[say('Hello', ' from', ' the', ' model.')]],

  /** Proposes a plan of several lines, and says something once it was decided about. */
  plan: [
    [call('propose_plan', { plan: '1. Look\n2. Change `a.ts`\n3. Test' })],
    [say('The plan was ', 'decided about.')],
  ],

  /** The key is not valid. */
  keyless: [refuse(401, 'invalid x-api-key')],

  /** Has no model whose name begins with `claude-foo`. */
  nameless: ({ model }) =>
    model.startsWith('claude-foo') ? refuse(404, `model: ${model}`) : [say(`Hello from ${model}.`)],

  /** Looks around, runs one command that needs approval, and sums up. */
  task: [
    [say('I look at the files ', 'first.'), call('glob', { pattern: '**/*' })],
    [
      say('Now I count the lines.'),
      call('bash', { command: 'wc -l README.md > lines.txt && cat lines.txt' }),
    ],
    [say('The README was counted; ', 'the number stands in `lines.txt`.')],
  ],

  /** Like `task`, but the second answer stops half-way until the gate `middle` is opened. */
  'task-held': [
    [say('I look at the files ', 'first.'), call('glob', { pattern: '**/*' })],
    [
      say('Now I '),
      hold('middle'),
      say('count the lines.'),
      call('bash', { command: 'wc -l README.md > lines.txt' }),
    ],
    [say('The README was counted.')],
  ],

  /** Says and prints what a terminal would obey; then begins an answer that only a stop ends. */
  hostile: [
    [
      say('\u001b[2J\u001b[HFAKED \u001b]52;c;cm0=\u0007prose'),
      call('bash', { command: "printf '\\033[2J\\033[HFAKED \\033]0;owned\\007output'" }),
    ],
    [say('Both were harmless.')],
    [say('This answer '), hold('never')],
    [say('It was stopped.')],
    [say('Fifth.')],
    [say('Sixth.')],
  ],

  /** Inserts a line after another one: what it looks for still stands in the file then. */
  insert: [
    [call('edit', { path: 'list.txt', old_string: 'one', new_string: 'one\nmore' })],
    [say('It was inserted.')],
  ],
  /** The same for every occurrence. */
  'insert-all': [
    [call('edit', { path: 'list.txt', old_string: 'o', new_string: 'oo', replace_all: true })],
    [say('It was inserted.')],
  ],

  /** Calls one tool of the repository's own. */
  probe: [[call('probe', {})], [say('It was probed.')]],
  launch: [[call('launch', {})], [say('It was launched.')]],

  /** Works as the prompt says: answers until a gate is opened (`long`, `soon`), or calls a tool of the repository's own. */
  lid: (request) => {
    const prompt = JSON.stringify(request.messages[0])
    if (turnIndex(request) > 0) return [say('That was it.')]
    if (prompt.includes('think long')) return [say('Let me think. '), hold('long'), say('Thought.')]
    if (prompt.includes('think briefly')) return [say('Let me see. '), hold('soon'), say('Seen.')]
    return [call(prompt.includes('probe') ? 'probe' : 'launch', {})]
  },

  /** Says what it heard last; about the middle, and about security, only when the gate is open. */
  echo: (request) => {
    const last = request.messages.at(-1)?.content ?? ''
    const blocks = typeof last === 'string' ? [{ type: 'text', text: last }] : last
    const heard = blocks.map((block) => ('text' in block ? block.text : '')).join('')
    const isHeld = /middle|security/.test(JSON.stringify([request.system, heard]))
    return [...(isHeld ? [hold('middle')] : []), say(`Heard: ${heard.slice(0, 60)}`)]
  },

  /**
   * Does what the newest prompt says, one call for each: a command line, `TOOL {…}` with its input as JSON, or `raw TOOL …` with
   * input that is passed on as it stands.
   */
  errand: (request) => {
    const last = request.messages.at(-1)?.content ?? ''
    const blocks = typeof last === 'string' ? [{ type: 'text', text: last }] : last
    if (blocks.some(({ type }) => type === 'tool_result')) return [say('Done.')]
    const texts = blocks.flatMap((block) =>
      'text' in block && typeof block.text === 'string' ? [block.text] : [],
    )
    const heard = texts.at(-1) ?? ''
    const [, raw, name, input] = /^(raw )?(\w+) ([{"].*)$/s.exec(heard) ?? []
    if (name === undefined || input === undefined) return [call('bash', { command: heard })]
    return [raw === undefined ? call(name, JSON.parse(input) as Record<string, Json>) : rawCall(name, input)]
  },

  /** A file, an edit and a command that need approval, then a summary. */
  edit: [
    [call('write', { path: 'notes/plan.md', content: '# Plan\n\n- begin\n' })],
    [
      call('edit', { path: 'notes/plan.md', old_string: '- begin', new_string: '- begun' }),
      call('bash', { command: 'wc -c notes/plan.md > size.txt' }),
    ],
    [say('Planned.')],
  ],

  /** Two commands, one after the other, each of which writes down where it ran. */
  'two-tests': [
    [say('First the tests.'), call('bash', { command: 'pwd >> places.txt && test -s README.md' })],
    [call('bash', { command: 'pwd >> places.txt && test -s places.txt' })],
    [say('Both pass.')],
  ],

  /** Says and does things with words that the relay must never see (blind.test.ts). */
  canaries: [
    [
      say('I look for canary-prompt-7f3a.'),
      call('bash', { command: 'ls; cat canary-file-c0de.txt; echo canary-output-5e5e' }),
    ],
    [call('write', { path: 'canary-file-c0de-2.txt', content: 'canary-code-91bc again' })],
    [say('Found canary-code-91bc.')],
  ],

  /**
   * All that an agent meets: thinking, calls side by side, a busy service, a broken stream, input that is no JSON, an answer that is cut
   * off, a to-do list. The gate `steer` holds the fourth answer. Long enough to be compacted with `compact_at: 3000`.
   */
  agent: [
    attempts(refuse(529), [
      think('First I look.'),
      say('I look around.'),
      call('glob', { pattern: '*' }),
      call('read', { path: 'README.md' }),
    ]),
    attempts(
      [think('Now'), say('I '), cut],
      [
        ...[think('Now the list.'), redacted],
        call('todo', { items: [{ text: 'write the note', state: 'doing' }] }),
        rawCall('write', '{"path": "note.md", "content": '),
      ],
    ),
    [think('Once more.'), call('write', { path: 'note.md', content: 'A note.\n'.repeat(1500) })],
    [hold('steer'), think('Check it.'), call('read', { path: 'note.md' }), call('grep', { pattern: 'note' })],
    [say('The note is '), stopFor('max_tokens')],
    [say('written.')],
    [think('Again.'), say('It is still there.')],
  ],

  /** What the screenshots show. */
  showcase: SHOWCASE_TURNS,
}
