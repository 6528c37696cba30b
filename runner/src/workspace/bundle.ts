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

export interface BundleHead {
  format: ObjectFormat
  /** Commits that the reader must have. */
  needs: string[]
  /** What it brings: full ref name → object id. */
  brings: Map<string, string>
}

/** Ref of the checkpoint in a bundle. */
export const CHECKPOINT_REF = 'refs/heads/checkpoint'
/** Refs of commits whose parents are missing in the source, a shallow clone. */
export const SHALLOW_REFS = 'refs/baton/shallow/'

/** No head is longer. */
export const HEAD_BYTES_MAX = 1 << 20

export function writeHead(head: BundleHead): Uint8Array {
  const lines =
    head.format === 'sha1' ? ['# v2 git bundle'] : ['# v3 git bundle', `@object-format=${head.format}`]
  for (const oid of head.needs) lines.push(`-${oid} checkpoint`)
  for (const [ref, oid] of head.brings) lines.push(`${oid} ${ref}`)
  return Buffer.from(`${lines.join('\n')}\n\n`)
}

/**
 * Reads the head from the first bytes of a bundle; `start` is where the pack begins, which is checked by git itself.
 * Throws BatonError `checkpoint-torn` when they are not a whole head.
 */
export function readHead(first: Uint8Array): BundleHead & { start: number } {
  const buffer = Buffer.from(first.buffer, first.byteOffset, first.byteLength)
  const end = buffer.subarray(0, HEAD_BYTES_MAX).indexOf('\n\n')
  const [signature, ...lines] = buffer.toString('latin1', 0, Math.max(end, 0)).split('\n')
  if (end < 0 || (signature !== '# v2 git bundle' && signature !== '# v3 git bundle')) {
    throw new BatonError('checkpoint-torn', '(not a git bundle)')
  }
  const head = { format: 'sha1' as ObjectFormat, needs: [] as string[], brings: new Map<string, string>() }
  for (const line of lines) {
    const need = /^-([0-9a-f]{40,64})( |$)/.exec(line)
    const bring = /^([0-9a-f]{40,64}) (.+)$/.exec(line)
    if (line === '@object-format=sha256') head.format = 'sha256'
    else if (need?.[1]) head.needs.push(need[1])
    else if (bring?.[1] && bring[2]) head.brings.set(bring[2], bring[1])
    else throw new BatonError('checkpoint-torn', '(unknown line in the head of a git bundle)')
  }
  return { ...head, start: end + 2 }
}
