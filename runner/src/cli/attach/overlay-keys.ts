/** Keys while something lies over the screen: a question, a choice, or something to read. */
import { edited, insert } from '../term/editor.ts'
import type { Host } from './host.ts'

export function overlayKey(host: Host, name: string | undefined, text: string | undefined): void {
  const state = host.state
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
      const draft = edited(overlay.draft, name, Math.max(1, host.columns - 2))
      if (draft) state.overlay = { ...overlay, draft }
    }
    return
  }
  const page = Math.max(1, host.rows - 4)
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
    const last = Math.max(0, overlay.lines(host.columns).length - (host.rows - 3))
    if (by !== undefined) state.overlay = { ...overlay, from: Math.max(0, Math.min(last, overlay.from + by)) }
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
