/** What keys do in `attach`. */
import { explain, type BatonError } from '@baton/shared/errors.ts'
import type { Item } from '@baton/shared/view/items.ts'
import { modeMeans, modeName } from '@baton/shared/view/modes.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import type { AccountView } from '../account.ts'
import { alwaysRule, decisionBody, endsPlanning, modeBody, ruleWords } from '../signed.ts'
import { AFTER_PLAN } from '../table.ts'
import { BLANK, draftOf, edited, insert, type Draft } from '../term/editor.ts'
import type { Key } from '../term/keys.ts'
import { clean } from '../term/text.ts'
import { choose, chooseEffort, chooseMode, chooseRunner, chooseSession, read } from './choices.ts'
import { documentLines } from './documents.ts'
import { blocksOf, transcriptRows } from './draw.ts'
import { helpLines } from './keys-help.ts'
import { revealing, scrolled } from './scroll.ts'
import type { AttachState } from './state.ts'

export type Ending = { code: number; error?: BatonError }

/** What keys act on. */
export interface Host {
  readonly state: AttachState
  readonly view: AccountView
  readonly columns: number
  readonly rows: number
  /** A passing word on the last line. */
  say: (words: string) => void
  drafted: (draft: Draft) => void
  switchTo: (sid: string) => void
  end: (ending: Ending) => void
  /** The screen is painted anew. */
  forget: () => void
  redraw: () => void
}

export class Acts {
  readonly #host: Host

  constructor(host: Host) {
    this.#host = host
  }

  /** One key, whatever has the focus. */
  key(key: Key): void {
    const name = 'name' in key ? key.name : undefined
    const text = 'text' in key ? clean(key.text) : undefined
    try {
      if (name === 'ctrl-c') this.#host.end({ code: 0 })
      else if (name === 'ctrl-z') process.kill(process.pid, 'SIGTSTP')
      else if (name === 'ctrl-l') this.#host.forget()
      else if (this.#host.state.overlay) this.#overlayKey(name, text)
      else if (!this.#commonKey(name)) {
        const { focus } = this.#host.state
        if (focus === 'approval') this.#approvalKey(name ?? text)
        else if (focus === 'transcript') this.#transcriptKey(name ?? text)
        else this.#composerKey(name, text)
      }
    } catch (error) {
      this.#host.say(explain(error))
    }
    this.#host.redraw()
  }

  /** Keys that mean the same wherever the focus is. */
  #commonKey(name: string | undefined): boolean {
    const state = this.#host.state
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
        this.#stop()
        return true
      case 'ctrl-t':
        chooseRunner(this.#host)
        return true
      case 'ctrl-g':
        chooseSession(this.#host)
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
        read(this.#host, 'Keys', helpLines)
        return true
      default:
        return false
    }
  }

  #composerKey(name: string | undefined, text: string | undefined): void {
    const { draft } = this.#host.state
    if (text !== undefined) {
      this.#host.drafted(insert(draft, text))
      return
    }
    switch (name) {
      case 'enter':
        // A backslash at the end of a line carries it on, for terminals that have no other key for that.
        if (draft.at === draft.text.length && draft.text.endsWith('\\'))
          this.#host.drafted(draftOf(`${draft.text.slice(0, -1)}\n`))
        else this.#send()
        return
      case 'ctrl-j':
      case 'alt-enter':
      case 'shift-enter':
      case 'ctrl-enter':
        this.#host.drafted(insert(draft, '\n'))
        return
      case 'ctrl-d':
        if (draft.text === '') this.#host.end({ code: 0 })
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
    const next = edited(this.#host.state.draft, name, Math.max(1, this.#host.columns - 2))
    if (next) this.#host.drafted(next)
    return next !== undefined
  }

  #send(): void {
    const { live, draft, steers, sessions } = this.#host.state
    const text = draft.text.trim()
    if (text === '') return
    const status = sessions.get(live.sid)?.status
    if (status === 'done' || status === 'failed') {
      this.#host.say('The session has ended. The text is kept; start another with: baton new')
      return
    }
    const isBusy = status === 'running' || status === 'waiting' || status === 'moving'
    live.send('prompt', { text, ...(steers && isBusy ? { steer: true } : {}) }, { text })
    this.#host.drafted(BLANK)
    // Steering is meant for one prompt.
    this.#host.state.steers = false
    this.#host.state.top = undefined
  }

  /** Nothing is sent where nothing runs: the transcript would tell of a stop that stopped nothing. */
  #stop(): void {
    const { live } = this.#host.state
    const session = this.#host.state.sessions.get(live.sid)
    const isResting = session?.status === 'idle' || session?.status === 'done' || session?.status === 'failed'
    if (isResting && session.pending === 0) {
      this.#host.say('Nothing runs.')
      return
    }
    live.send('stop', {})
    this.#host.say('Stopping.')
  }

  /** A refused command leaves; the text of a prompt comes back into the composer. */
  #takeBack(): void {
    const { live, draft } = this.#host.state
    const refused = live.outgoing.find(({ state }) => state === 'refused')
    if (!refused) return
    live.drop(refused.id)
    if (refused.text !== undefined)
      this.#host.drafted(draftOf([refused.text, draft.text].filter((text) => text !== '').join('\n\n')))
  }

  #approvalKey(name: string | undefined): void {
    const state = this.#host.state
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
      const body = decisionBody(this.#host.view.identity.device, live.sid, approval, {
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
          this.#host.say('See all of it first: ↓')
          return
        }
        if (endsPlanning(live.transcript, approval)) {
          choose(
            this.#host,
            'The plan is approved. What may the agent do then?',
            AFTER_PLAN.map((mode) => ({
              ...{ label: modeName(mode), about: modeMeans(mode) },
              pick: () => {
                const { device } = this.#host.view.identity
                live.send('mode', modeBody(device, live.sid, mode, live.transcript.revision))
                decide(true)
              },
            })),
          )
          return
        }
        if (name === 'y') {
          decide(true)
          return
        }
        const always = alwaysRule(live.transcript, approval)
        if (!always) this.#host.say('No rule would be safe for a call like this; y approves this one.')
        else {
          choose(this.#host, `From now on, in this session, without asking?`, [
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
    const { live, selected } = this.#host.state
    const { items } = live.transcript
    this.#host.state.focus = 'transcript'
    if (!items.some(({ id }) => id === selected)) this.#host.state.selected = items.findLast(isOpenable)?.id
  }

  #transcriptKey(name: string | undefined): void {
    const state = this.#host.state
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
        chooseRunner(this.#host)
        return
      case 's':
        chooseSession(this.#host)
        return
      case 'M':
        chooseMode(this.#host)
        return
      case 'e':
        chooseEffort(this.#host)
        return
      case 'c':
        state.live.send('compact', {})
        this.#host.say('The conversation is compacted at the next step.')
        return
      case 'd':
        read(this.#host, 'Documents', (width) => documentLines(state.live.transcript.documents, width))
        return
      case 'x':
        this.#stop()
        return
      case '?':
        read(this.#host, 'Keys', helpLines)
        return
      case 'q':
        this.#host.end({ code: 0 })
        return
    }
  }

  #overlayKey(name: string | undefined, text: string | undefined): void {
    const state = this.#host.state
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
        const draft = edited(overlay.draft, name, Math.max(1, this.#host.columns - 2))
        if (draft) state.overlay = { ...overlay, draft }
      }
      return
    }
    const page = Math.max(1, this.#host.rows - 4)
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
      const last = Math.max(0, overlay.lines(this.#host.columns).length - (this.#host.rows - 3))
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

  #rows(): number {
    return transcriptRows(this.#host.state, this.#host.columns, this.#host.rows, Date.now())
  }

  #scroll(by: number): void {
    const blocks = blocksOf(this.#host.state, this.#host.columns)
    this.#host.state.top = scrolled(blocks, this.#host.state.top, this.#rows(), by)
  }

  #select(by: 1 | -1): void {
    const state = this.#host.state
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
    state.top = revealing(blocksOf(state, this.#host.columns), state.top, this.#rows(), next)
  }

  #toggle(id: string | undefined): void {
    if (id === undefined) return
    const opened = new Set(this.#host.state.opened)
    if (!opened.delete(id)) opened.add(id)
    this.#host.state.opened = opened
    const index = this.#host.state.live.transcript.items.findIndex((item) => item.id === id)
    if (index >= 0)
      this.#host.state.top = revealing(
        blocksOf(this.#host.state, this.#host.columns),
        this.#host.state.top,
        this.#rows(),
        index,
      )
  }

  #toggleNewest(): void {
    const { items } = this.#host.state.live.transcript
    this.#toggle(items.findLast((item) => item.kind !== 'thought' && isOpenable(item))?.id)
  }

  #toggleAll(): void {
    const all = this.#host.state.live.transcript.items.filter(isOpenable).map(({ id }) => id)
    this.#host.state.opened = new Set(all.every((id) => this.#host.state.opened.has(id)) ? [] : all)
  }
}

function isOpenable(item: Item): boolean {
  return item.kind === 'tool' || item.kind === 'thought' || (item.kind === 'text' && item.blob !== undefined)
}
