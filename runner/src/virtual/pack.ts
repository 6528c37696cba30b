/**
 * A change of a tree as bytes, deflated as a whole:
 *
 *     length of the header, 4 bytes, big endian
 *     header, JSON: {"removed": [path …], "set": [[path, "file", mode, size] | [path, "link", target] | [path, "folder", mode] …]}
 *     the bytes of the files, in the order of the header
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import { TREE_BYTES_MAX, type Change, type Node } from './tree.ts'

/** The header and, packed badly, the files. */
const UNPACKED_MAX = TREE_BYTES_MAX + (16 << 20)

const Path = v.pipe(
  v.string(),
  v.check(
    (path) => path !== '' && !path.split('/').some((part) => part === '' || part === '.' || part === '..'),
  ),
)
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))
const Header = v.object({
  removed: v.array(Path),
  set: v.array(
    v.union([
      v.tuple([Path, v.literal('file'), count, count]),
      v.tuple([Path, v.literal('link'), v.string()]),
      v.tuple([Path, v.literal('folder'), count]),
    ]),
  ),
})

export function packChange({ set, removed }: Change): Uint8Array {
  const header: v.InferOutput<typeof Header> = {
    removed,
    set: set.map(([path, node]) => {
      if (node.type === 'file') return [path, 'file', node.mode, node.bytes.length]
      return node.type === 'link' ? [path, 'link', node.target] : [path, 'folder', node.mode]
    }),
  }
  const head = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  const files = set.flatMap(([, node]) => (node.type === 'file' ? [node.bytes] : []))
  return deflateRawSync(Buffer.concat([length, head, ...files]))
}

/** Throws BatonError `checkpoint-torn`. */
export function unpackChange(packed: Uint8Array): Change {
  try {
    const bytes = inflateRawSync(packed, { maxOutputLength: UNPACKED_MAX })
    let at = 4 + bytes.readUInt32BE(0)
    const header = v.parse(Header, JSON.parse(bytes.toString('utf8', 4, at)))
    const set = header.set.map((entry): [string, Node] => {
      switch (entry[1]) {
        case 'file': {
          const [path, , mode, size] = entry
          if (at + size > bytes.length) throw new Error('it ends too soon')
          const own = Uint8Array.from(bytes.subarray(at, at + size))
          at += size
          return [path, { type: 'file', mode, bytes: own }]
        }
        case 'link':
          return [entry[0], { type: 'link', target: entry[2] }]
        case 'folder':
          return [entry[0], { type: 'folder', mode: entry[2] }]
      }
    })
    return { set, removed: header.removed }
  } catch (cause) {
    throw new BatonError('checkpoint-torn', '(files of the session)', { cause })
  }
}
