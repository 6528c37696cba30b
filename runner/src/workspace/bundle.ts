/**
 * Git bundles (gitformat-bundle(5)): a text head that names what the reader must have and what it gets, then one pack.
 *
 *     # v2 git bundle\n            v3 when the repository uses SHA-256:  # v3 git bundle\n@object-format=sha256\n
 *     -<oid> checkpoint\n          a commit that the reader must have
 *     <oid> <ref>\n                a commit that the pack brings
 *     \n
 *     PACK…
 *
 * Written and read here instead of by `git bundle`, because that needs refs on both sides and walks the whole history to see
 * that they reach what is missing. `git bundle verify` and `git clone` read the result.
 */
import { BatonError } from '@baton/shared/errors.ts'

export type ObjectFormat = 'sha1' | 'sha256'

export interface Bundle {
  format: ObjectFormat
  /** Commits that the reader must have. */
  needs: string[]
  /** What it brings: full ref name → object id. */
  brings: Map<string, string>
  pack: Uint8Array
}

/** Ref of the checkpoint in a bundle. */
export const CHECKPOINT_REF = 'refs/heads/checkpoint'
/** Refs of commits whose parents are missing in the source, a shallow clone. */
export const SHALLOW_REFS = 'refs/baton/shallow/'

const HEAD_BYTES = 1 << 20

export function writeBundle(bundle: Bundle): Uint8Array {
  const lines =
    bundle.format === 'sha1' ? ['# v2 git bundle'] : ['# v3 git bundle', `@object-format=${bundle.format}`]
  for (const oid of bundle.needs) lines.push(`-${oid} checkpoint`)
  for (const [ref, oid] of bundle.brings) lines.push(`${oid} ${ref}`)
  return Buffer.concat([Buffer.from(`${lines.join('\n')}\n\n`), bundle.pack])
}

/** Throws BatonError `checkpoint-torn` when the bytes are not a whole bundle head. The pack is checked by git itself. */
export function readBundle(bytes: Uint8Array): Bundle {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = buffer.subarray(0, HEAD_BYTES).indexOf('\n\n')
  const [signature, ...lines] = buffer.toString('latin1', 0, Math.max(end, 0)).split('\n')
  if (end < 0 || (signature !== '# v2 git bundle' && signature !== '# v3 git bundle')) {
    throw new BatonError('checkpoint-torn', '(not a git bundle)')
  }
  const bundle: Bundle = { format: 'sha1', needs: [], brings: new Map(), pack: buffer.subarray(end + 2) }
  for (const line of lines) {
    const need = /^-([0-9a-f]{40,64})( |$)/.exec(line)
    const bring = /^([0-9a-f]{40,64}) (.+)$/.exec(line)
    if (line === '@object-format=sha256') bundle.format = 'sha256'
    else if (need?.[1]) bundle.needs.push(need[1])
    else if (bring?.[1] && bring[2]) bundle.brings.set(bring[2], bring[1])
    else throw new BatonError('checkpoint-torn', '(unknown line in the head of a git bundle)')
  }
  return bundle
}
