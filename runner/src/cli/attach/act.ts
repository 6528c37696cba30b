/** What keys do in `attach`. */
import { explain } from '@baton/shared/errors.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import { BLANK, draftOf, edited, insert } from '../term/editor.ts'
import type { Key } from '../term/keys.ts'
import { clean } from '../term/text.ts'
import { approvalKey } from './approval-keys.ts'
import { chooseEffort, chooseMode, chooseRunner, chooseSession, read } from './choices.ts'
import { documentLines } from './documents.ts'
import type { Host } from './host.ts'
import { helpLines } from './keys-help.ts'
import { focusTranscript, scroll, scrollPage, select, toggle, toggleAll, toggleNewest } from './looking.ts'
import { overlayKey } from './overlay-keys.ts'

/** One key, whatever has the focus. */
export function act(host: Host, key: Key): void {
  const name = 'name' in key ? key.name : undefined
  const text = 'text' in key ? clean(key.text) : undefined
  try {
    if (name === 'ctrl-c') host.end({ code: 0 })
    else if (name === 'ctrl-z') process.kill(process.pid, 'SIGTSTP')
    else if (name === 'ctrl-l') host.forget()
    else if (host.state.overlay) overlayKey(host, name, text)
    else if (!commonKey(host, name)) {
      const { focus } = host.state
      if (focus === 'approval') approvalKey(host, name ?? text)
      else if (focus === 'transcript') transcriptKey(host, name ?? text)
      else composerKey(host, name, text)
    }
  } catch (error) {
    host.say(explain(error))
  }
  host.redraw()
}

/** Keys that mean the same wherever the focus is. */
function commonKey(host: Host, name: string | undefined): boolean {
  const state = host.state
  switch (name) {
    case 'pageup':
      scrollPage(host, -1)
      return true
    case 'pagedown':
      scrollPage(host, 1)
      return true
    case 'tab': {
      const hasApproval = pendingApprovals(state.live.transcript).length > 0
      state.focus = state.focus === 'composer' && hasApproval ? 'approval' : 'composer'
      return true
    }
    case 'ctrl-x':
      stop(host)
      return true
    case 'ctrl-t':
      chooseRunner(host)
      return true
    case 'ctrl-g':
      chooseSession(host)
      return true
    case 'ctrl-s':
      state.steers = !state.steers
      return true
    case 'ctrl-o':
      toggleNewest(host)
      return true
    case 'ctrl-p':
      takeBack(host)
      return true
    case 'f1':
      read(host, 'Keys', helpLines)
      return true
    default:
      return false
  }
}

function composerKey(host: Host, name: string | undefined, text: string | undefined): void {
  const { draft } = host.state
  if (text !== undefined) {
    host.drafted(insert(draft, text))
    return
  }
  switch (name) {
    case 'enter':
      // A backslash at the end of a line carries it on, for terminals that have no other key for that.
      if (draft.at === draft.text.length && draft.text.endsWith('\\'))
        host.drafted(draftOf(`${draft.text.slice(0, -1)}\n`))
      else send(host)
      return
    case 'ctrl-j':
    case 'alt-enter':
    case 'shift-enter':
    case 'ctrl-enter':
      host.drafted(insert(draft, '\n'))
      return
    case 'ctrl-d':
      if (draft.text === '') host.end({ code: 0 })
      else edit(host, 'delete')
      return
    case 'escape':
      focusTranscript(host)
      return
    case 'up':
    case 'down':
      if (!edit(host, name)) scroll(host, name === 'up' ? -1 : 1)
      return
    default:
      if (name !== undefined) edit(host, name)
  }
}

function edit(host: Host, name: string): boolean {
  const next = edited(host.state.draft, name, Math.max(1, host.columns - 2))
  if (next) host.drafted(next)
  return next !== undefined
}

function send(host: Host): void {
  const { live, draft, steers, sessions } = host.state
  const text = draft.text.trim()
  if (text === '') return
  const status = sessions.get(live.sid)?.status
  if (status === 'done' || status === 'failed') {
    host.say('The session has ended. The text is kept; start another with: baton new')
    return
  }
  const isBusy = status === 'running' || status === 'waiting' || status === 'moving'
  live.send('prompt', { text, ...(steers && isBusy ? { steer: true } : {}) }, { text })
  host.drafted(BLANK)
  // Steering is meant for one prompt.
  host.state.steers = false
  host.state.top = undefined
}

/** Nothing is sent where nothing runs: the transcript would tell of a stop that stopped nothing. */
function stop(host: Host): void {
  const { live } = host.state
  const session = host.state.sessions.get(live.sid)
  const isResting = session?.status === 'idle' || session?.status === 'done' || session?.status === 'failed'
  if (isResting && session.pending === 0) {
    host.say('Nothing runs.')
    return
  }
  live.send('stop', {})
  host.say('Stopping.')
}

/** A refused command leaves; the text of a prompt comes back into the composer. */
function takeBack(host: Host): void {
  const { live, draft } = host.state
  const refused = live.outgoing.find(({ state }) => state === 'refused')
  if (!refused) return
  live.drop(refused.id)
  if (refused.text !== undefined)
    host.drafted(draftOf([refused.text, draft.text].filter((text) => text !== '').join('\n\n')))
}

function transcriptKey(host: Host, name: string | undefined): void {
  const state = host.state
  switch (name) {
    case 'escape':
    case 'i':
      state.focus = 'composer'
      return
    case 'up':
    case 'k':
      select(host, -1)
      return
    case 'down':
    case 'j':
      select(host, 1)
      return
    case 'enter':
    case ' ':
      toggle(host, state.selected)
      return
    case 'a':
      toggleAll(host)
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
      chooseRunner(host)
      return
    case 's':
      chooseSession(host)
      return
    case 'M':
      chooseMode(host)
      return
    case 'e':
      chooseEffort(host)
      return
    case 'c':
      state.live.send('compact', {})
      host.say('The conversation is compacted at the next step.')
      return
    case 'd':
      read(host, 'Documents', (width) => documentLines(state.live.transcript.documents, width))
      return
    case 'x':
      stop(host)
      return
    case '?':
      read(host, 'Keys', helpLines)
      return
    case 'q':
      host.end({ code: 0 })
      return
  }
}
