/** Moving about in the transcript: scrolling, selecting, opening and closing. */
import type { Item } from '@baton/shared/view/items.ts'
import { blocksOf, transcriptRows } from './draw.ts'
import type { Host } from './host.ts'
import { revealing, scrolled } from './scroll.ts'

export function focusTranscript(host: Host): void {
  const { live, selected } = host.state
  const { items } = live.transcript
  host.state.focus = 'transcript'
  if (!items.some(({ id }) => id === selected)) host.state.selected = items.findLast(isOpenable)?.id
}

function rowsOf(host: Host): number {
  return transcriptRows(host.state, host.columns, host.rows, Date.now())
}

/** Two lines of the page before stay in sight. */
export function scrollPage(host: Host, by: 1 | -1): void {
  scroll(host, by * Math.max(1, rowsOf(host) - 2))
}

export function scroll(host: Host, by: number): void {
  const blocks = blocksOf(host.state, host.columns)
  host.state.top = scrolled(blocks, host.state.top, rowsOf(host), by)
}

export function select(host: Host, by: 1 | -1): void {
  const state = host.state
  const { items } = state.live.transcript
  const at = items.findIndex(({ id }) => id === state.selected)
  const next =
    by > 0
      ? items.findIndex((item, i) => i > at && isOpenable(item))
      : items.findLastIndex((item, i) => i < at && isOpenable(item))
  if (next < 0) {
    scroll(host, by)
    return
  }
  state.selected = items[next]?.id
  state.top = revealing(blocksOf(state, host.columns), state.top, rowsOf(host), next)
}

export function toggle(host: Host, id: string | undefined): void {
  if (id === undefined) return
  const opened = new Set(host.state.opened)
  if (!opened.delete(id)) opened.add(id)
  host.state.opened = opened
  const index = host.state.live.transcript.items.findIndex((item) => item.id === id)
  if (index >= 0)
    host.state.top = revealing(blocksOf(host.state, host.columns), host.state.top, rowsOf(host), index)
}

export function toggleNewest(host: Host): void {
  const { items } = host.state.live.transcript
  toggle(host, items.findLast((item) => item.kind !== 'thought' && isOpenable(item))?.id)
}

export function toggleAll(host: Host): void {
  const all = host.state.live.transcript.items.filter(isOpenable).map(({ id }) => id)
  host.state.opened = new Set(all.every((id) => host.state.opened.has(id)) ? [] : all)
}

function isOpenable(item: Item): boolean {
  return item.kind === 'tool' || item.kind === 'thought' || (item.kind === 'text' && item.blob !== undefined)
}
