/**
 * `attach --plain`: lines as they come, for terminals that are no screen, for pipes and for screen readers. A line that is typed is a
 * prompt; one that begins with a slash is a command. With --json each journal entry is a line.
 */
import { createInterface } from 'node:readline'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { SessionInfo } from '@baton/shared/protocol.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import { isTrueCall, questionOf } from '@baton/shared/view/call.ts'
import type { Item } from '@baton/shared/view/items.ts'
import { namesOf, type AccountView, type Listed } from '../account.ts'
import { targetOf } from '../handoff.ts'
import { doubtsOf } from '../model-doubt.ts'
import { alwaysRule, decisionBody, endsPlanning, modeBody, ruleWords } from '../signed.ts'
import { AFTER_PLAN, EFFORTS } from '../table.ts'
import { painted } from '../term/style.ts'
import { clean } from '../term/text.ts'
import type { Ending } from './host.ts'
import { LiveSession } from './live.ts'
import { callLines, itemLines } from './rows.ts'

const WIDTH_MAX = 100
const SETTLED: ReadonlySet<string> = new Set(['ok', 'error', 'denied', 'interrupted', 'stopped'])
const LEAVE_MS = 5000
const COMMANDS =
  '/approve [edit], /deny WHY, /always, /stop, /steer TEXT, /move [RUNNER], /model MODEL, /effort EFFORT, /quit'

export class PlainAttach {
  readonly #view: AccountView
  readonly #live: LiveSession
  readonly #names: Map<string, string>
  readonly #json: boolean
  readonly #printed = new Set<string>()
  /** Of a session that has ended. */
  #lastSeq = Infinity
  readonly #ended = Promise.withResolvers<Ending>()
  readonly #input = createInterface({ input: process.stdin, terminal: false })

  constructor(view: AccountView, sid: string, listed: Listed, json: boolean) {
    this.#view = view
    this.#json = json
    this.#names = namesOf(listed)
    this.#live = new LiveSession(
      ...([view, sid, () => this.#show()] as const),
      json ? (entries) => entries.forEach((entry) => write(JSON.stringify(entry))) : undefined,
    )
    this.#input.on('line', (line) => {
      this.#line(line).catch((error: unknown) => this.#complain(error))
    })
    // What was piped in has been said; who asked for lines still wants to see them.
    this.#input.on('close', () => undefined)
    view.onState((state) => {
      if (state.at === 'refused') this.end({ code: 1, error: new BatonError(state.code, state.message) })
    })
    this.#hear(listed.sessions.find((session) => session.sid === sid))
    view.onNotice((notice) => {
      if (notice.t === 'session' && notice.session.sid === sid) this.#hear(notice.session)
    })
  }

  #hear(session: SessionInfo | undefined): void {
    if (session?.status === 'done' || session?.status === 'failed') this.#lastSeq = session.seq
    this.#endIfOver()
  }

  /** Nothing more can come of a session that has ended: whoever reads along is done. */
  #endIfOver(): void {
    if (this.#live.transcript.seq >= this.#lastSeq) this.end({ code: 0 })
  }

  get ended(): Promise<Ending> {
    return this.#ended.promise
  }

  end(ending: Ending): void {
    this.#ended.resolve(ending)
  }

  async close(): Promise<void> {
    this.#input.close()
    await this.#live.settle(LEAVE_MS)
    for (const text of this.#live.unsent()) this.#complain(new Error(`not sent: ${text}`))
    this.#live[Symbol.dispose]()
  }

  #show(): void {
    this.#print()
    this.#endIfOver()
  }

  #print(): void {
    const { live } = { live: this.#live }
    if (live.refused) this.end({ code: 1, error: live.refused })
    for (const sent of live.outgoing) {
      if (sent.state === 'refused' && this.#once(`refused ${sent.id}`)) this.#complain(new Error(sent.error))
    }
    if (this.#json) return
    const { items } = live.transcript
    for (const item of items) if (isWhole(item) && this.#once(item.id)) this.#printItem(item)
    for (const approval of pendingApprovals(live.transcript)) {
      if (!live.isRead || !this.#once(`asks ${approval.effect}`)) continue
      const call = callLines(approval.name, approval.input, width(), [{ text: '  ' }])
      const isPlan = endsPlanning(live.transcript, approval)
      const hasRule = alwaysRule(live.transcript, approval) !== undefined
      const lie = isTrueCall(approval) ? '' : '\n  (this is not what would run; it can not be approved)'
      write(`? ${questionOf(approval.name)}\n${text(call)}${lie}\n  ${waysOf(isPlan, hasRule)}`)
    }
  }

  #once(id: string): boolean {
    if (this.#printed.has(id)) return false
    this.#printed.add(id)
    return true
  }

  #printItem(item: Item): void {
    const nameOf = (device: string): string => this.#names.get(device) ?? device.slice(0, 8)
    const lines = itemLines(item, {
      width: width(),
      isOpen: item.kind === 'tool' || item.kind === 'thought',
      nameOf,
    })
    write(text(lines))
  }

  #complain(error: unknown): void {
    const line = error instanceof BatonError && error.code === 'usage' ? error.detail : explain(error)
    process.stderr.write(`baton: ${clean(line)}\n`)
  }

  async #line(line: string): Promise<void> {
    const [, command, rest = ''] = /^\/([a-z]+)\s*(.*)$/s.exec(line) ?? []
    const live = this.#live
    switch (command) {
      case undefined: {
        const said = line.startsWith('//') ? line.slice(1) : line
        if (said.trim() !== '') live.send('prompt', { text: said }, { text: said })
        return
      }
      case 'steer':
        if (rest !== '') live.send('prompt', { text: rest, steer: true }, { text: rest })
        return
      case 'approve':
      case 'always':
      case 'deny':
        this.#decide(command, rest)
        return
      case 'stop':
        live.send('stop', {})
        return
      case 'move': {
        const { sessions, runners } = await this.#view.list()
        const holder = sessions.find(({ sid }) => sid === live.sid)?.holder
        const { where, label } = targetOf(this.#view, runners, rest === '' ? undefined : rest, holder)
        live.send('move', { label }, {}, where)
        return
      }
      case 'model': {
        const model = rest.trim()
        if (model === '') throw new BatonError('usage', 'Say which one: /model MODEL.')
        const { warnings = [] } = doubtsOf(model, (await this.#view.list()).runners)
        live.send('settings', { settings: { model } })
        for (const words of warnings) process.stderr.write(`baton: ${clean(words)}\n`)
        return
      }
      case 'effort': {
        const effort = EFFORTS.find((known) => known === rest.trim())
        if (effort === undefined)
          throw new BatonError('usage', `/effort takes one of: ${EFFORTS.join(', ')}.`)
        live.send('settings', { settings: { effort } })
        return
      }
      case 'quit':
        this.end({ code: 0 })
        return
      default:
        throw new BatonError('usage', `There is no /${command} here. There are: ${COMMANDS}.`)
    }
  }

  #decide(how: 'approve' | 'always' | 'deny', note: string): void {
    const live = this.#live
    const [approval] = pendingApprovals(live.transcript)
    if (!approval) throw new BatonError('usage', 'Nothing waits for a decision.')
    const always = how === 'always' ? alwaysRule(live.transcript, approval) : undefined
    if (how === 'always' && !always)
      throw new BatonError('usage', 'No rule would be safe for this call; use /approve.')
    if (always) write(`  (from now on: ${ruleWords(always)})`)
    const { device } = this.#view.identity
    const isPlan = how !== 'deny' && endsPlanning(live.transcript, approval)
    const then = isPlan && note === 'edit' ? 'edit' : AFTER_PLAN[0]
    if (isPlan) live.send('mode', modeBody(device, live.sid, then, live.transcript.revision, approval.effect))
    const body = decisionBody(device, live.sid, approval, {
      approved: how !== 'deny',
      ...(note === '' || (isPlan && note === then) ? {} : { note }),
      ...(always ? { always } : {}),
    })
    live.send('decision', body, { decided: { effect: approval.effect, approved: how !== 'deny' } })
  }
}

function waysOf(isPlan: boolean, hasRule: boolean): string {
  if (isPlan) return '/approve (then it asks first), /approve edit (then it may edit files) or /deny WHY'
  return hasRule ? '/approve, /deny WHY or /always' : '/approve or /deny WHY'
}

/** A call is printed when it has ended, everything else at once. */
function isWhole(item: Item): boolean {
  return item.kind !== 'tool' || SETTLED.has(item.state)
}

const width = (): number => Math.min(WIDTH_MAX, process.stdout.columns || WIDTH_MAX)
const text = (lines: ReturnType<typeof itemLines>): string =>
  lines.map((line) => painted(line, 'none').trimEnd()).join('\n')
const write = (line: string): void => void process.stdout.write(`${line}\n`)
