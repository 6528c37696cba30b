/** A window on blocks of lines that are made only when they are looked at: a journal of any length costs what is on the screen. */
import type { Line } from '../term/text.ts'

export interface Blocks {
  count: number
  lines: (index: number) => readonly Line[]
}

/** The first line that shows; undefined: the window follows the end. */
export type Top = { index: number; line: number } | undefined

export interface Window {
  lines: Line[]
  top: Top
  /** Lines above the window's first block exist. */
  hasAbove: boolean
  /** Block of each line. */
  blocks: number[]
}

export function windowOn(blocks: Blocks, top: Top, height: number): Window {
  if (top) {
    const seen = downFrom(blocks, top, height)
    if (seen.lines.length === height) return { ...seen, top, hasAbove: top.index > 0 || top.line > 0 }
    // The end came into sight: from here on it follows.
  }
  return upFromEnd(blocks, height)
}

function downFrom(blocks: Blocks, top: { index: number; line: number }, height: number) {
  const lines: Line[] = []
  const of: number[] = []
  for (let index = top.index; index < blocks.count && lines.length < height; index++) {
    for (const line of blocks.lines(index).slice(index === top.index ? top.line : 0)) {
      if (lines.length === height) break
      lines.push(line)
      of.push(index)
    }
  }
  return { lines, blocks: of }
}

function upFromEnd(blocks: Blocks, height: number): Window {
  const lines: Line[] = []
  const of: number[] = []
  let hasAbove = false
  for (let index = blocks.count - 1; index >= 0; index--) {
    if (lines.length >= height) {
      hasAbove = true
      break
    }
    const block = blocks.lines(index)
    lines.unshift(...block)
    of.unshift(...block.map(() => index))
  }
  const extra = Math.max(0, lines.length - height)
  return {
    lines: lines.slice(extra),
    blocks: of.slice(extra),
    top: undefined,
    hasAbove: hasAbove || extra > 0,
  }
}

/** Moves the window by lines: up when negative. */
export function scrolled(blocks: Blocks, top: Top, height: number, by: number): Top {
  let { index, line } = top ?? endTop(blocks, height)
  line += by
  while (line < 0 && index > 0) line += blocks.lines(--index).length
  while (index < blocks.count && line >= blocks.lines(index).length) {
    line -= blocks.lines(index).length
    index++
  }
  if (line < 0) line = 0
  const next = { index, line }
  // At or beyond the end it follows.
  return downFrom(blocks, next, height + 1).lines.length <= height && by > 0 ? undefined : next
}

function endTop(blocks: Blocks, height: number): { index: number; line: number } {
  let left = height
  for (let index = blocks.count - 1; index >= 0; index--) {
    const { length } = blocks.lines(index)
    if (length >= left) return { index, line: length - left }
    left -= length
  }
  return { index: 0, line: 0 }
}

/** The window moved as little as possible so that a block's first line shows. */
export function revealing(blocks: Blocks, top: Top, height: number, index: number): Top {
  const seen = windowOn(blocks, top, height)
  const first = seen.blocks[0]
  const isSeen =
    seen.blocks.includes(index) && (index !== first || (top ?? endTop(blocks, height)).line === 0)
  if (isSeen) return top
  if (first !== undefined && index > first) return scrolled(blocks, { index, line: 0 }, height, -(height - 1))
  return { index, line: 0 }
}
