/** `attach` on a screen: keys change the state, the journal changes the session, and a picture is drawn of both. */
import { BatonError } from '@baton/shared/errors.ts'
import type { Notice } from '@baton/shared/protocol.ts'
import { namesOf, type AccountView, type Listed } from '../account.ts'
import { draftOf, type Draft } from '../term/editor.ts'
import { Screen } from '../term/screen.ts'
import { painted, type Colours } from '../term/style.ts'
import { act } from './act.ts'
import { draw } from './draw.ts'
import type { Drafts } from './drafts.ts'
import type { Ending, Host } from './host.ts'
import { LiveSession } from './live.ts'
import type { AttachState } from './state.ts'

/** Between two pictures: quick enough for the eye, slow enough for a phone line. */
const FRAME_MS = 33
const SAID_MS = 4000
const SAVE_MS = 400
/** What is on its way when a person leaves may still arrive. */
const LEAVE_MS = 2000

export class AttachApp implements Host {
  readonly view: AccountView
  readonly state: AttachState
  readonly #drafts: Drafts
  readonly #colours: Colours
  readonly #screen: Screen
  readonly #ended = Promise.withResolvers<Ending>()
  readonly #ends: (() => void)[] = []
  #frame: ReturnType<typeof setTimeout> | undefined
  #saying: ReturnType<typeof setTimeout> | undefined
  #saving: ReturnType<typeof setTimeout> | undefined
  #isEnding = false
  readonly #save = (): void => this.#saveDraft()

  constructor(view: AccountView, sid: string, listed: Listed, drafts: Drafts, colours: Colours) {
    this.view = view
    this.#drafts = drafts
    this.#colours = colours
    this.state = {
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
      onKey: (key) => act(this, key),
      onResize: () => this.redraw(),
      onHangup: () => this.end({ code: 0 }),
    })
    this.#ends.push(
      view.onNotice((notice) => this.#notice(notice)),
      view.onState((state) => {
        this.state.connection = state
        if (state.at === 'refused') this.end({ code: 1, error: new BatonError(state.code, state.message) })
        else if (state.at === 'open') {
          this.state.lost_at = undefined
          this.#relist()
        } else {
          this.state.lost_at ??= Date.now()
          // The word about it comes after a while.
          setTimeout(() => this.redraw(), 2100).unref()
        }
        this.redraw()
      }),
    )
    process.on('exit', this.#save)
    this.#refreshWaiting()
    this.redraw()
  }

  /** Resolves when the person leaves, a signal comes or the relay refuses this device. */
  get ended(): Promise<Ending> {
    return this.#ended.promise
  }

  /** Gives the terminal back. What was typed and not sent is kept as the draft. */
  async close(): Promise<void> {
    const { live } = this.state
    await live.settle(LEAVE_MS)
    this.#saveDraft()
    process.off('exit', this.#save)
    for (const end of this.#ends) end()
    for (const timer of [this.#frame, this.#saying, this.#saving]) clearTimeout(timer)
    live[Symbol.dispose]()
    this.#screen.close()
  }

  end(ending: Ending): void {
    this.#isEnding = true
    this.#ended.resolve(ending)
  }

  /** The terminal is given back while the program is suspended. */
  suspend(): void {
    this.#screen.close()
  }
  resume(): void {
    this.#screen.open()
    this.redraw()
  }

  get columns(): number {
    return this.#screen.columns
  }
  get rows(): number {
    return this.#screen.rows
  }
  forget(): void {
    this.#screen.forget()
  }

  #liveOf(sid: string): LiveSession {
    return new LiveSession(this.view, sid, () => this.redraw())
  }

  // ---- what comes in ------------------------------------------------------------------------------------------------------

  #notice(notice: Notice): void {
    const { sessions, runners, names, live } = this.state
    if (notice.t === 'session') {
      this.state.sessions = new Map(sessions).set(notice.session.sid, this.view.named(notice.session))
      if (notice.session.sid === live.sid) this.#refreshWaiting()
    } else if (notice.t === 'runner') {
      const runner = this.view.namedRunner(notice.runner)
      this.state.runners = new Map(runners).set(runner.device, runner)
      this.state.names = new Map(names).set(runner.device, runner.about.name)
    } else if (notice.t === 'device') {
      const { device, about } = this.view.namedDevice(notice.device)
      if (!runners.has(device)) this.state.names = new Map(names).set(device, about.name)
    } else return
    this.redraw()
  }

  /** What changed while there was no connection. */
  #relist(): void {
    this.view.list().then(
      (listed) => {
        this.state.sessions = new Map(listed.sessions.map((session) => [session.sid, session]))
        this.state.runners = new Map(listed.runners.map((runner) => [runner.device, runner]))
        this.state.names = namesOf(listed)
        this.#refreshWaiting()
        this.redraw()
      },
      () => undefined,
    )
  }

  #refreshWaiting(): void {
    const { live, sessions } = this.state
    void live.refreshWaiting(sessions.get(live.sid)?.pending ?? 0)
  }

  // ---- what goes out ------------------------------------------------------------------------------------------------------

  redraw(): void {
    if (this.#frame !== undefined || this.#isEnding) return
    this.#frame = setTimeout(() => {
      this.#frame = undefined
      if (this.#isEnding) return
      // A slow line gets the newest picture when it is free, and none in between.
      if (!this.#screen.isReady) {
        this.#screen.onceReady(() => this.redraw())
        return
      }
      this.#fetchOpened()
      const { columns, rows } = this.#screen
      const { lines, cursor } = draw(this.state, columns, rows, Date.now())
      this.#screen.paint({
        lines: lines.map((line) => painted(line, this.#colours)),
        ...(cursor ? { cursor } : {}),
      })
    }, FRAME_MS)
  }

  say(words: string): void {
    this.state.said = words
    clearTimeout(this.#saying)
    this.#saying = setTimeout(() => {
      this.state.said = undefined
      this.redraw()
    }, SAID_MS)
    this.redraw()
  }

  #saveDraft(): void {
    const { live, draft } = this.state
    this.#drafts.write(live.sid, [...live.unsent(), draft.text].filter((text) => text !== '').join('\n\n'))
  }

  drafted(draft: Draft): void {
    this.state.draft = draft
    clearTimeout(this.#saving)
    this.#saving = setTimeout(this.#save, SAVE_MS)
  }

  /** The whole of long results is fetched when they are opened. */
  #fetchOpened(): void {
    const { live, opened } = this.state
    for (const item of live.transcript.items) {
      if (!opened.has(item.id) || (item.kind !== 'tool' && item.kind !== 'text') || !item.blob) continue
      void live.fetchWhole(item.blob, item.kind)
    }
  }

  switchTo(sid: string): void {
    const state = this.state
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
}
