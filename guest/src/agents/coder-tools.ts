/** Tools that the agent performs itself: its to-do list, and in plan mode the plan. */
import {
  approve,
  document,
  DocumentRefused,
  start,
  type Document,
  type Json,
  type JsonSchema,
  type Mode,
  type OwnTool,
} from 'baton'
import { stringOf } from './coder-blocks.ts'

const todoSchema = {
  type: 'array',
  maxItems: 100,
  items: {
    type: 'object',
    properties: {
      text: { type: 'string', minLength: 1, maxLength: 500 },
      state: { enum: ['open', 'doing', 'done'] },
    },
    required: ['text', 'state'],
    additionalProperties: false,
  },
} as const
/** A person decides about a plan as a whole: what they approve is what the agent does. */
const planSchema = {
  type: 'object',
  properties: {
    text: { type: 'string', title: 'Plan', readOnly: true },
    state: { enum: ['proposed', 'approved', 'declined'], title: 'State', readOnly: true },
  },
  required: ['text', 'state'],
  additionalProperties: false,
} as const

interface TodoItem {
  text: string
  state: 'open' | 'doing' | 'done'
}
interface Plan {
  text: string
  state: 'proposed' | 'approved' | 'declined'
}

const asJson = (schema: JsonSchema): OwnTool['schema'] => schema as OwnTool['schema']

const todoTool: OwnTool = {
  name: 'todo',
  description:
    'Replaces your to-do list, which the user sees. Give all items each time, with at most one of them "doing".',
  schema: asJson({ type: 'object', properties: { items: todoSchema }, required: ['items'] }),
}
export const PLAN_TOOL = 'propose_plan'
const planTool: OwnTool = {
  name: PLAN_TOOL,
  description: 'Shows the user your plan, in Markdown, and waits for their decision.',
  schema: asJson({ type: 'object', properties: { plan: { type: 'string' } }, required: ['plan'] }),
}

export interface Done {
  text: string
  is_error: boolean
}

export class OwnTools {
  #todo: Document<TodoItem[]> | undefined
  #plan: Document<Plan> | undefined
  #news: string | undefined

  /** The to-do list as text; empty when there is none. */
  get todo(): string {
    const items = this.#todo?.value ?? []
    return items.map(({ text, state }) => `- [${state}] ${text}`).join('\n')
  }

  /** What a person changed since the last time. */
  takeNews(): string | undefined {
    const news = this.#news
    this.#news = undefined
    return news
  }

  specs(mode: Mode): OwnTool[] {
    return mode === 'plan' ? [todoTool, planTool] : [todoTool]
  }

  has(name: string): boolean {
    return name === todoTool.name || name === PLAN_TOOL
  }

  /** Rejects with EffectFailed when the plan's approval is stopped. */
  async perform(name: string, input: { [key: string]: Json }): Promise<Done> {
    try {
      return name === todoTool.name ? this.#setTodo(input['items']) : await this.#propose(input['plan'])
    } catch (error) {
      if (error instanceof DocumentRefused) return { text: `bad-input: ${error.message}`, is_error: true }
      throw error
    }
  }

  #setTodo(items: Json | undefined): Done {
    const value = (items ?? null) as unknown as TodoItem[]
    if (this.#todo) this.#todo.set(value)
    else {
      this.#todo = document('todo', { schema: todoSchema, initial: value })
      this.#todo.onChange(() => {
        this.#news = `The user changed the to-do list. It is now:\n${this.todo}`
      })
    }
    return { text: 'The list is updated.', is_error: false }
  }

  async #propose(given: Json | undefined): Promise<Done> {
    const plan = stringOf(given)
    if (plan.trim() === '') return { text: 'bad-input: the plan is empty.', is_error: true }
    this.#setPlan({ text: plan, state: 'proposed' })
    const { approved, note } = await approve(PLAN_TOOL, { plan })
    this.#setPlan({ text: plan, state: approved ? 'approved' : 'declined' })
    const said = note === undefined ? '' : ` The user says: ${note}`
    if (!approved) return { text: `The user does not want this plan.${said}`, is_error: true }
    const next =
      start().mode === 'plan'
        ? 'The session is still in plan mode: change nothing until the user leaves it.'
        : 'Carry it out now.'
    return { text: `The user approved the plan.${said} ${next}`, is_error: false }
  }

  #setPlan(value: Plan): void {
    if (this.#plan) this.#plan.set(value)
    else this.#plan = document('plan', { schema: planSchema, initial: value })
  }
}
