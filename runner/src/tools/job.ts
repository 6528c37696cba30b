import * as v from 'valibot'
import type { JobRecord, Jobs } from '../jobs/jobs.ts'
import { defineTool, Refusal } from './define.ts'
import { RESULT_CHARS } from './text.ts'
import type { ToolAnswer } from './tool.ts'

const WAIT_MS_MAX = 60_000
const COMMAND_CHARS = 200
/** Of a session that came here the tool can't tell whether there were some elsewhere; with an id it can. */
const NO_JOBS =
  'There are no jobs here. One that was started elsewhere ended when the session left that machine.'

export const job = defineTool({
  name: 'job',
  description: `Looks at and stops what bash started with background.
status: which jobs there are, or what became of one. output: what a job wrote, the newest part, or from a place on with offset; the answer says where to read on. stop: ends a job and all its processes; not in plan mode.
wait_ms waits for the end of a job first, at most that long: better than asking again and again.
Jobs end when the session leaves this machine, because it is moved, rests for long, or ends.`,
  replay: 'safe',
  access: 'read',
  changes: ({ action }) => action === 'stop',
  input: v.strictObject({
    action: v.pipe(v.picklist(['status', 'output', 'stop']), v.description('status, output or stop.')),
    id: v.optional(
      v.pipe(v.string(), v.description('The job, e.g. job-1-k7qf@laptop. status without it: all.')),
    ),
    offset: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.description('For output: the byte to read from, as an earlier answer said.'),
      ),
    ),
    wait_ms: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(WAIT_MS_MAX),
        v.description(`Wait for its end, at most so many milliseconds (up to ${WAIT_MS_MAX}).`),
      ),
    ),
  }),
  check({ action, id }, place) {
    if (place && !place.stay?.jobs) throw new Refusal('There are no background jobs here.')
    if (id === undefined && action !== 'status') throw new Refusal(`Which job? Give its id to ${action} it.`)
  },
  async run({ action, id, offset, wait_ms = 0 }, context) {
    const jobs = context.stay?.jobs
    if (!jobs) throw new Refusal('There are no background jobs here.')
    if (id === undefined) {
      const all = jobs.list()
      return { text: all.map(sentence).join('\n') || NO_JOBS, is_error: false }
    }
    here(jobs, id)
    if (action === 'stop') await jobs.stop(id)
    else if (wait_ms > 0) await jobs.wait(id, wait_ms, context.signal)
    const record = here(jobs, id)
    const detail = { job: id, running: record.state.at === 'running', bytes: record.bytes }
    if (action !== 'output') return { text: sentence(record), is_error: false, detail }
    return output(jobs, record, offset)
  },
})

function output(jobs: Jobs, record: JobRecord, offset: number | undefined): ToolAnswer {
  const { id, bytes, cut, state } = record
  const part = jobs.output(id, offset, RESULT_CHARS)
  if (!part) throw new Refusal(`The output of ${id} is not here any more.`)
  const notes: string[] = []
  if (offset !== undefined && offset > part.end) notes.push(`It has written only ${part.end} bytes so far.`)
  else if (offset !== undefined && part.from > offset)
    notes.push(`${part.from - offset} bytes before this are not kept any more.`)
  else if (offset === undefined && part.from > 0)
    notes.push(`${part.from} bytes before this: see them with offset.`)
  if (cut !== undefined && part.next === part.end)
    notes.push(`What it wrote after this could not be kept: ${cut}`)
  if (part.next < part.end && state.at === 'ended')
    notes.push(`More follows: read on with offset ${part.next}.`)
  else
    notes.push(state.at === 'running' ? `Still running; read on with offset ${part.next}.` : sentence(record))
  return {
    text: [part.text.replace(/\n$/, ''), ...notes.map((note) => `[${note}]`)]
      .filter((line) => line !== '')
      .join('\n'),
    is_error: false,
    detail: { job: id, running: state.at === 'running', from: part.from, next: part.next, bytes },
  }
}

/** Throws Refusal for a job that is not of this stay. */
function here(jobs: Jobs, id: string): JobRecord {
  const found = jobs.find(id)
  if (found?.at === 'here') return found.record
  if (found) {
    throw new Refusal(
      `${id} ended when the session left ${found.runner}: jobs stay behind, and its output is there. Start it again here if it is still needed.`,
      'job-left',
    )
  }
  const known = jobs.list().map((record) => record.id)
  const todo = known.length > 0 ? `There are: ${known.join(', ')}.` : 'There are none.'
  throw new Refusal(`There is no job ${id}. ${todo}`, 'not-found')
}

function sentence({ id, command, started, bytes, cut, state }: JobRecord): string {
  const what = command.length > COMMAND_CHARS ? `${command.slice(0, COMMAND_CHARS)}…` : command
  const kept = cut === undefined ? '' : `, all that could be kept (${cut})`
  return `${id} ${became(state, started)}; ${bytes} bytes of output${kept}: ${what}`
}

function became(state: JobRecord['state'], started: number): string {
  if (state.at === 'running') return `is running for ${seconds(Date.now() - started)}`
  const after = state.took_ms > 0 ? ` after ${seconds(state.took_ms)}` : ''
  switch (state.by) {
    case 'stopped':
      return `was stopped${after}`
    case 'left':
      return `ended${after} because the session left this machine`
    case 'flood':
      return `was ended${after}: it wrote too much`
    case 'failed':
      return 'could not be started'
    case 'exit':
      return state.signal === null
        ? `ended${after} with exit code ${state.code}`
        : `was ended${after} by signal ${state.signal}`
  }
}

function seconds(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`
}
