/** `attach` on a screen: keys change the state, the journal changes the session, and a picture is drawn of both. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Notice, Placement } from '@baton/shared/protocol.ts'
import { poolTag } from '@baton/shared/keys.ts'
import type { Item } from '@baton/shared/view/items.ts'
import { MODES } from '@baton/shared/view/modes.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import { ago } from '@baton/shared/view/units.ts'
import { inOrder, type AccountView, type Listed } from '../account.ts'
import { alwaysRule, decisionBody, modeBody, ruleWords } from '../signed.ts'
import { EFFORTS } from '../table.ts'
import { BLANK, draftOf, edited, insert } from '../term/editor.ts'
import type { Key } from '../term/keys.ts'
import { Screen } from '../term/screen.ts'
import { painted, type Colours } from '../term/style.ts'
import { clean } from '../term/text.ts'
import { blocksOf, draw, transcriptRows } from './draw.ts'
import type { Drafts } from './drafts.ts'
import { helpLines } from './keys-help.ts'
import { LiveSession } from './live.ts'
import { documentLines } from './documents.ts'
import { revealing, scrolled } from './scroll.ts'
import type { AttachState, Choice } from './state.ts'

/** Between two pictures: quick enough for the eye, slow enough for a phone line. */
const FRAME_MS = 33
const SAID_MS = 4000
const SAVE_MS = 400
/** What is on its way when a person leaves may still arrive. */
const LEAVE_MS = 2000

export type Ending = { code: number; error?: BatonError }

export class AttachApp {
  readonly #view: AccountView
  readonly #drafts: Drafts
  readonly #colours: Colours
  readonly #screen: Screen
  readonly #state: AttachState
  readonly #ended = Promise.withResolvers<Ending>()
  readonly #ends: (() => void)[] = []
  #frame: ReturnType<typeof setTimeout> | undefined
  #saying: ReturnType<typeof setTimeout> | undefined
  #saving: ReturnType<typeof setTimeout> | undefined
  #isEnding = false
  readonly #save = (): void => this.#saveDraft()

  constructor(view: AccountView, sid: string, listed: Listed, drafts: Drafts, colours: Colours) {
    this.#view = view
    this.#drafts = drafts
    this.#colours = colours
    this.#state = {
      live: this.#liveOf(sid),
      sessions: new Map(listed.sessions.map((session) => [session.sid, session])),
      runners: new Map(listed.runners.map((runner) => [runner.device, runner])),
      names: namesOf(listed),
      connection: view.link.connection.state,
      ...{ lost_at: undefined, focus: 'composer', draft: draftOf(drafts.read(sid)), steers: false },
      ...{
        overlay: undefined,
        top: undefined,
        opened: new Set(),
        selected: undefined,
        card: undefined,
        said: undefined,
      },
    }
    this.#screen = new Screen(process.stdin, process.stdout, {
      onKey: (key) => this.#key(key),
      onResize: () => this.#redraw(),
      onHangup: () => this.#end({ code: 0 }),
    })
    this.#ends.push(
      view.onNotice((notice) => this.#notice(notice)),
      view.onState((state) => {
        this.#state.connection = state
        if (state.at === 'refused') this.#end({ code: 1, error: new BatonError(state.code, state.message) })
        else if (state.at === 'open') {
          this.#state.lost_at = undefined
          this.#relist()
        } else {
          this.#state.lost_at ??= Date.now()
          // The word about it comes after a while.
          setTimeout(() => this.#redraw(), 2100).unref()
        }
        this.#redraw()
      }),
    )
    process.on('exit', this.#save)
    this.#refreshWaiting()
    this.#redraw()
  }

  /** Resolves when the person leaves, a signal comes or the relay refuses this device. */
  get ended(): Promise<Ending> {
    return this.#ended.promise
  }

  /** Gives the terminal back. What was typed and not sent is kept as the draft. */
  async close(): Promise<void> {
    const { live } = this.#state
    if (!live.isSettled) {
      const deadline = Date.now() + LEAVE_MS
      while (!live.isSettled && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    this.#saveDraft()
    process.off('exit', this.#save)
    for (const end of this.#ends) end()
    for (const timer of [this.#frame, this.#saying, this.#saving]) clearTimeout(timer)
    live[Symbol.dispose]()
    this.#screen.close()
  }

  end(ending: Ending): void {
    this.#end(ending)
  }

  /** The terminal is given back while the program is suspended. */
  suspend(): void {
    this.#screen.close()
  }
  resume(): void {
    this.#screen.open()
    this.#redraw()
  }

  #end(ending: Ending): void {
    this.#isEnding = true
    this.#ended.resolve(ending)
  }

  #liveOf(sid: string): LiveSession {
    return new LiveSession(this.#view, sid, () => this.#redraw())
  }

  // ---- what comes in ------------------------------------------------------------------------------------------------------

  #notice(notice: Notice): void {
    const { sessions, runners, names, live } = this.#state
    if (notice.t === 'session') {
      this.#state.sessions = new Map(sessions).set(notice.session.sid, this.#view.named(notice.session))
      if (notice.session.sid === live.sid) this.#refreshWaiting()
    } else if (notice.t === 'runner') {
      const runner = this.#view.namedRunner(notice.runner)
      this.#state.runners = new Map(runners).set(runner.device, runner)
      this.#state.names = new Map(names).set(runner.device, runner.about.name)
    } else if (notice.t === 'device') {
      const { device, about } = this.#view.namedDevice(notice.device)
      if (!runners.has(device)) this.#state.names = new Map(names).set(device, about.name)
    } else return
    this.#redraw()
  }

  /** What changed while there was no connection. */
  #relist(): void {
    this.#view.list().then(
      (listed) => {
        this.#state.sessions = new Map(listed.sessions.map((session) => [session.sid, session]))
        this.#state.runners = new Map(listed.runners.map((runner) => [runner.device, runner]))
        this.#state.names = namesOf(listed)
        this.#refreshWaiting()
        this.#redraw()
      },
      () => undefined,
    )
  }

  #refreshWaiting(): void {
    const { live, sessions } = this.#state
    void live.refreshWaiting(sessions.get(live.sid)?.pending ?? 0)
  }

  // ---- what goes out ------------------------------------------------------------------------------------------------------

  #redraw(): void {
    if (this.#frame !== undefined || this.#isEnding) return
    this.#frame = setTimeout(() => {
      this.#frame = undefined
      if (this.#isEnding) return
      // A slow line gets the newest picture when it is free, and none in between.
      if (!this.#screen.isReady) {
        this.#screen.onceReady(() => this.#redraw())
        return
      }
      this.#fetchOpened()
      const { columns, rows } = this.#screen
      const { lines, cursor } = draw(this.#state, columns, rows, Date.now())
      this.#screen.paint({
        lines: lines.map((line) => painted(line, this.#colours)),
        ...(cursor ? { cursor } : {}),
      })
    }, FRAME_MS)
  }

  #say(words: string): void {
    this.#state.said = words
    clearTimeout(this.#saying)
    this.#saying = setTimeout(() => {
      this.#state.said = undefined
      this.#redraw()
    }, SAID_MS)
    this.#redraw()
  }

  #saveDraft(): void {
    const { live, draft } = this.#state
    this.#drafts.write(live.sid, [...live.unsent(), draft.text].filter((text) => text !== '').join('\n\n'))
  }

  #drafted(draft: AttachState['draft']): void {
    this.#state.draft = draft
    clearTimeout(this.#saving)
    this.#saving = setTimeout(this.#save, SAVE_MS)
  }

  /** The whole of long results is fetched when they are opened. */
  #fetchOpened(): void {
    const { live, opened } = this.#state
    for (const item of live.transcript.items) {
      if (!opened.has(item.id) || (item.kind !== 'tool' && item.kind !== 'text') || !item.blob) continue
      void live.fetchWhole(item.blob, item.kind)
    }
  }

  // ---- keys ---------------------------------------------------------------------------------------------------------------

  #key(key: Key): void {
    const name = 'name' in key ? key.name : undefined
    const text = 'text' in key ? clean(key.text) : undefined
    try {
      if (name === 'ctrl-c') this.#end({ code: 0 })
      else if (name === 'ctrl-z') process.kill(process.pid, 'SIGTSTP')
      else if (name === 'ctrl-l') this.#screen.forget()
      else if (this.#state.overlay) this.#overlayKey(name, text)
      else if (!this.#commonKey(name)) {
        const { focus } = this.#state
        if (focus === 'approval') this.#approvalKey(name ?? text)
        else if (focus === 'transcript') this.#transcriptKey(name ?? text)
        else this.#composerKey(name, text)
      }
    } catch (error) {
      this.#say(explain(error))
    }
    this.#redraw()
  }

  /** Keys that mean the same wherever the focus is. */
  #commonKey(name: string | undefined): boolean {
    const state = this.#state
    switch (name) {
      case 'pageup':
        this.#scroll(-Math.max(1, this.#rows() - 2))
        return true
      case 'pagedown':
        this.#scroll(Math.max(1, this.#rows() - 2))
        return true
      case 'tab': {
        const hasApproval = pendingApprovals(state.live.transcript).length > 0
        state.focus = state.focus === 'composer' && hasApproval ? 'approval' : 'composer'
        return true
      }
      case 'ctrl-x':
        state.live.send('stop', {})
        this.#say('Stopping.')
        return true
      case 'ctrl-t':
        this.#chooseRunner()
        return true
      case 'ctrl-g':
        this.#chooseSession()
        return true
      case 'ctrl-s':
        state.steers = !state.steers
        return true
      case 'ctrl-o':
        this.#toggleNewest()
        return true
      case 'ctrl-p':
        this.#takeBack()
        return true
      case 'f1':
        this.#read('Keys', helpLines)
        return true
      default:
        return false
    }
  }

  #composerKey(name: string | undefined, text: string | undefined): void {
    const { draft } = this.#state
    if (text !== undefined) {
      this.#drafted(insert(draft, text))
      return
    }
    switch (name) {
      case 'enter':
        // A backslash at the end of a line carries it on, for terminals that have no other key for that.
        if (draft.at === draft.text.length && draft.text.endsWith('\\'))
          this.#drafted(draftOf(`${draft.text.slice(0, -1)}\n`))
        else this.#send()
        return
      case 'ctrl-j':
      case 'alt-enter':
      case 'shift-enter':
      case 'ctrl-enter':
        this.#drafted(insert(draft, '\n'))
        return
      case 'ctrl-d':
        if (draft.text === '') this.#end({ code: 0 })
        else this.#edit('delete')
        return
      case 'escape':
        this.#focusTranscript()
        return
      case 'up':
      case 'down':
        if (!this.#edit(name)) this.#scroll(name === 'up' ? -1 : 1)
        return
      default:
        if (name !== undefined) this.#edit(name)
    }
  }

  #edit(name: string): boolean {
    const next = edited(this.#state.draft, name, Math.max(1, this.#screen.columns - 2))
    if (next) this.#drafted(next)
    return next !== undefined
  }

  #send(): void {
    const { live, draft, steers, sessions } = this.#state
    const text = draft.text.trim()
    if (text === '') return
    const status = sessions.get(live.sid)?.status
    if (status === 'done' || status === 'failed') {
      this.#say('The session has ended. The text is kept; start another with: baton new')
      return
    }
    const isBusy = status === 'running' || status === 'waiting' || status === 'moving'
    live.send('prompt', { text, ...(steers && isBusy ? { steer: true } : {}) }, { text })
    this.#drafted(BLANK)
    this.#state.top = undefined
  }

  /** A refused command leaves; the text of a prompt comes back into the composer. */
  #takeBack(): void {
    const { live, draft } = this.#state
    const refused = live.outgoing.find(({ state }) => state === 'refused')
    if (!refused) return
    live.drop(refused.id)
    if (refused.text !== undefined)
      this.#drafted(draftOf([refused.text, draft.text].filter((text) => text !== '').join('\n\n')))
  }

  #approvalKey(name: string | undefined): void {
    const state = this.#state
    const { live, card } = state
    const [approval] = pendingApprovals(live.transcript)
    if (!approval || name === 'escape') {
      state.focus = 'composer'
      return
    }
    const given = live.outgoing.find(({ decided }) => decided?.effect === approval.effect)
    const decide = (
      approved: boolean,
      more: { note?: string; always?: ReturnType<typeof alwaysRule> } = {},
    ): void => {
      const { note, always } = more
      const body = decisionBody(this.#view.identity.device, live.sid, approval, {
        approved,
        ...(note === undefined ? {} : { note }),
        ...(always === undefined ? {} : { always }),
      })
      live.send('decision', body, { decided: { effect: approval.effect, approved } })
      state.focus = 'composer'
    }
    switch (name) {
      case 'y':
      case 'a': {
        if (given) return
        if (card?.effect !== approval.effect || !card.seen) {
          this.#say('See all of it first: ↓')
          return
        }
        if (name === 'y') {
          decide(true)
          return
        }
        const always = alwaysRule(live.transcript, approval)
        if (!always) this.#say('No rule would be safe for a call like this; y approves this one.')
        else {
          this.#choose(`From now on, in this session, without asking?`, [
            { label: `Always allow ${ruleWords(always)}`, pick: () => decide(true, { always }) },
            { label: 'Only this one', pick: () => decide(true) },
          ])
        }
        return
      }
      case 'n':
        if (given) return
        state.overlay = {
          ...{ as: 'ask', question: 'Deny. Why? (for the agent; may be empty)', draft: BLANK },
          done: (note) => decide(false, note === '' ? {} : { note }),
        }
        return
      case 'x':
        if (given?.state === 'refused') live.drop(given.id)
        return
      case 'up':
      case 'k':
        if (card) card.from = Math.max(0, card.from - 1)
        return
      case 'down':
      case 'j':
      case ' ':
        if (card) card.from += 1
        return
    }
  }

  #focusTranscript(): void {
    const { live, selected } = this.#state
    const { items } = live.transcript
    this.#state.focus = 'transcript'
    if (!items.some(({ id }) => id === selected)) this.#state.selected = items.findLast(isOpenable)?.id
  }

  #transcriptKey(name: string | undefined): void {
    const state = this.#state
    switch (name) {
      case 'escape':
      case 'i':
        state.focus = 'composer'
        return
      case 'up':
      case 'k':
        this.#select(-1)
        return
      case 'down':
      case 'j':
        this.#select(1)
        return
      case 'enter':
      case ' ':
        this.#toggle(state.selected)
        return
      case 'a':
        this.#toggleAll()
        return
      case 'g':
      case 'home':
        state.top = { index: 0, line: 0 }
        return
      case 'G':
      case 'end':
        state.top = undefined
        return
      case 'm':
        this.#chooseRunner()
        return
      case 's':
        this.#chooseSession()
        return
      case 'M':
        this.#chooseMode()
        return
      case 'e':
        this.#chooseEffort()
        return
      case 'c':
        state.live.send('compact', {})
        this.#say('The conversation is compacted at the next step.')
        return
      case 'd':
        this.#read('Documents', (width) => documentLines(state.live.transcript.documents, width))
        return
      case 'x':
        state.live.send('stop', {})
        this.#say('Stopping.')
        return
      case '?':
        this.#read('Keys', helpLines)
        return
      case 'q':
        this.#end({ code: 0 })
        return
    }
  }

  #overlayKey(name: string | undefined, text: string | undefined): void {
    const state = this.#state
    const { overlay } = state
    if (!overlay) return
    if (name === 'escape' || (text === 'q' && overlay.as !== 'ask')) {
      state.overlay = undefined
      return
    }
    if (overlay.as === 'ask') {
      if (name === 'enter') {
        state.overlay = undefined
        overlay.done(overlay.draft.text.trim())
      } else if (text !== undefined)
        state.overlay = { ...overlay, draft: insert(overlay.draft, text.replaceAll('\n', ' ')) }
      else if (name !== undefined) {
        const draft = edited(overlay.draft, name, Math.max(1, this.#screen.columns - 2))
        if (draft) state.overlay = { ...overlay, draft }
      }
      return
    }
    const page = Math.max(1, this.#screen.rows - 4)
    const steps: Record<string, number> = {
      up: -1,
      k: -1,
      down: 1,
      j: 1,
      pageup: -page,
      pagedown: page,
      ' ': page,
    }
    const by = steps[name ?? text ?? '']
    if (overlay.as === 'read') {
      const last = Math.max(0, overlay.lines(this.#screen.columns).length - (this.#screen.rows - 3))
      if (by !== undefined)
        state.overlay = { ...overlay, from: Math.max(0, Math.min(last, overlay.from + by)) }
      return
    }
    if (name === 'enter') {
      state.overlay = undefined
      overlay.choices[overlay.selected]?.pick()
    } else if (by !== undefined) {
      const selected = Math.max(0, Math.min(overlay.choices.length - 1, overlay.selected + by))
      state.overlay = { ...overlay, selected }
    }
  }

  // ---- what keys do -------------------------------------------------------------------------------------------------------

  #rows(): number {
    return transcriptRows(this.#state, this.#screen.columns, this.#screen.rows, Date.now())
  }

  #scroll(by: number): void {
    const blocks = blocksOf(this.#state, this.#screen.columns)
    this.#state.top = scrolled(blocks, this.#state.top, this.#rows(), by)
  }

  #select(by: 1 | -1): void {
    const state = this.#state
    const { items } = state.live.transcript
    const at = items.findIndex(({ id }) => id === state.selected)
    const next =
      by > 0
        ? items.findIndex((item, i) => i > at && isOpenable(item))
        : items.findLastIndex((item, i) => i < at && isOpenable(item))
    if (next < 0) {
      this.#scroll(by)
      return
    }
    state.selected = items[next]?.id
    state.top = revealing(blocksOf(state, this.#screen.columns), state.top, this.#rows(), next)
  }

  #toggle(id: string | undefined): void {
    if (id === undefined) return
    const opened = new Set(this.#state.opened)
    if (!opened.delete(id)) opened.add(id)
    this.#state.opened = opened
    const index = this.#state.live.transcript.items.findIndex((item) => item.id === id)
    if (index >= 0)
      this.#state.top = revealing(
        blocksOf(this.#state, this.#screen.columns),
        this.#state.top,
        this.#rows(),
        index,
      )
  }

  #toggleNewest(): void {
    this.#toggle(this.#state.live.transcript.items.findLast(isOpenable)?.id)
  }

  #toggleAll(): void {
    const all = this.#state.live.transcript.items.filter(isOpenable).map(({ id }) => id)
    this.#state.opened = new Set(all.every((id) => this.#state.opened.has(id)) ? [] : all)
  }

  #read(title: string, lines: (width: number) => ReturnType<typeof helpLines>): void {
    this.#state.overlay = { as: 'read', title, lines, from: 0 }
  }

  #choose(title: string, choices: readonly Choice[]): void {
    if (choices.length === 0) this.#say('There is nothing to choose from.')
    else this.#state.overlay = { as: 'choose', title, choices, selected: 0 }
  }

  #chooseRunner(): void {
    const { live, sessions, runners } = this.#state
    const holder = sessions.get(live.sid)?.holder
    const move = (label: string, where: Placement) => (): void => {
      live.send('move', { label }, {}, where)
      this.#say(`Moving to ${label}.`)
    }
    const online = [...runners.values()].filter((runner) => runner.online)
    const others = online.filter(({ device }) => device !== holder)
    const pools = [...new Set(online.flatMap(({ about }) => about.pools))]
    this.#choose('Where should it run?', [
      ...others.map(({ device, about, held, capacity }) => ({
        ...{ label: about.name, about: `${about.platform} · holds ${held} of ${capacity}` },
        pick: move(about.name, { prefer: device }),
      })),
      ...pools.map((pool) => ({
        ...{ label: pool, about: 'pool' },
        pick: move(pool, { pool: poolTag(this.#view.identity.account, pool) }),
      })),
    ])
  }

  #chooseSession(): void {
    const { live, sessions } = this.#state
    const others = inOrder([...sessions.values()]).filter(({ sid }) => sid !== live.sid)
    this.#choose(
      'Which session?',
      others.map(({ sid, status, named, changed_at }) => ({
        ...{ label: named.title, about: `${status} · ${ago(changed_at, Date.now())}` },
        pick: () => this.#switchTo(sid),
      })),
    )
  }

  #switchTo(sid: string): void {
    const state = this.#state
    this.#saveDraft()
    state.live[Symbol.dispose]()
    Object.assign(state, {
      ...{
        live: this.#liveOf(sid),
        draft: draftOf(this.#drafts.read(sid)),
        top: undefined,
        opened: new Set(),
      },
      ...{ selected: undefined, card: undefined, focus: 'composer', steers: false },
    } satisfies Partial<AttachState>)
    this.#refreshWaiting()
  }

  #chooseMode(): void {
    const { live } = this.#state
    this.#choose(
      'What may the agent do without asking?',
      MODES.map(({ mode, name, means }) => ({
        ...{ label: name, about: `${means}${mode === live.transcript.mode ? ' (now)' : ''}` },
        pick: () =>
          live.send('mode', modeBody(this.#view.identity.device, live.sid, mode, live.transcript.revision)),
      })),
    )
  }

  #chooseEffort(): void {
    const { live, runners } = this.#state
    const models = [...new Set([...runners.values()].flatMap(({ about }) => about.models ?? []))]
    this.#choose('Model and effort, from the next request on', [
      ...EFFORTS.map((effort) => ({
        ...{ label: `Effort ${effort}`, pick: () => live.send('settings', { settings: { effort } }) },
      })),
      ...models.map((model) => ({
        ...{ label: `Model ${model}`, pick: () => live.send('settings', { settings: { model } }) },
      })),
    ])
  }
}

function isOpenable(item: Item): boolean {
  return item.kind === 'tool' || (item.kind === 'text' && item.blob !== undefined)
}

/** Runners by the name that they announce now, other devices by the one that they signed in with. */
function namesOf({ runners, devices }: Listed): Map<string, string> {
  return new Map([
    ...devices.map(({ device, about }): [string, string] => [device, about.name]),
    ...runners.map(({ device, about }): [string, string] => [device, about.name]),
  ])
}
