/**
 * Files that live in a session. A tree is a plain value: its bytes are never changed, only replaced, so that a copy of the map is
 * a copy of all. Paths are relative to the root of the workspace, with `/`. Times are not part of it.
 */
import { createHash } from 'node:crypto'
import { BatonError } from '@baton/shared/errors.ts'

export type Node =
  | { type: 'file'; mode: number; bytes: Uint8Array }
  | { type: 'link'; target: string }
  | { type: 'folder'; mode: number }
export type Tree = ReadonlyMap<string, Node>

/** What makes one tree of another. */
export interface Change {
  set: [path: string, node: Node][]
  removed: string[]
}

export const TREE_BYTES_MAX = 64 << 20
export const TREE_ENTRIES_MAX = 20_000

export function changeBetween(before: Tree, after: Tree): Change {
  const set = [...after].filter(([path, node]) => !isSame(before.get(path), node))
  return { set, removed: [...before.keys()].filter((path) => !after.has(path)) }
}

export function withChange(tree: Tree, { set, removed }: Change): Tree {
  const after = new Map(tree)
  for (const path of removed) after.delete(path)
  for (const [path, node] of set) after.set(path, node)
  return after
}

/** Throws BatonError `too-large` for a tree that a session can't carry. */
export function assertCarried(tree: Tree): void {
  if (tree.size > TREE_ENTRIES_MAX)
    throw new BatonError(
      'too-large',
      `(${tree.size} files and folders in the session; at most ${TREE_ENTRIES_MAX})`,
    )
  let bytes = 0
  for (const node of tree.values()) if (node.type === 'file') bytes += node.bytes.length
  if (bytes > TREE_BYTES_MAX)
    throw new BatonError(
      'too-large',
      `(${bytes >> 20} MB of files in the session; at most ${TREE_BYTES_MAX >> 20} MB)`,
    )
}

/** Hex SHA-256 that names a tree: the same for the same paths, modes and bytes, in any order. */
export function digestOf(tree: Tree): string {
  const hash = createHash('sha256')
  for (const path of [...tree.keys()].toSorted()) {
    const node = tree.get(path)
    if (node) hash.update(`${JSON.stringify([path, ...wordsOf(node)])}\n`)
  }
  return hash.digest('hex')
}

function wordsOf(node: Node): (string | number)[] {
  switch (node.type) {
    case 'file':
      return ['file', node.mode, createHash('sha256').update(node.bytes).digest('hex')]
    case 'link':
      return ['link', node.target]
    case 'folder':
      return ['folder', node.mode]
  }
}

function isSame(one: Node | undefined, other: Node): boolean {
  if (one === other) return true
  if (one?.type === 'file' && other.type === 'file')
    return one.mode === other.mode && Buffer.compare(one.bytes, other.bytes) === 0
  if (one?.type === 'link' && other.type === 'link') return one.target === other.target
  return one?.type === 'folder' && other.type === 'folder' && one.mode === other.mode
}
