/** Changes one file, once for each call, however often the call is begun. */
import { realpath } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { FileChange } from './attempts.ts'
import { Refusal } from './define.ts'
import { noteFile } from './files.ts'
import type { InnerPath } from './paths.ts'
import type { SessionFiles } from './session-files.ts'
import type { ToolAnswer, ToolContext } from './tool.ts'

/** The new bytes, absent when nothing is to be changed, and what the call gives back once they are in place. */
export interface Made {
  bytes?: Uint8Array
  answer: Pick<ToolAnswer, 'text' | 'is_error' | 'detail'>
}

/**
 * `make` gets the bytes of the file, undefined when there is none, and throws Refusal for what can't be done; `again`: an earlier attempt
 * of this call could do it with just these bytes. Where one has put its own in place already, gives what that one would have given. Throws
 * Refusal `changed` when one was cut off and somebody changed the file since: then nobody knows whether it was done.
 */
export async function changeFile(
  place: InnerPath,
  files: SessionFiles,
  context: ToolContext,
  make: (found: Buffer | undefined, again: boolean) => Made,
): Promise<ToolAnswer> {
  const found = await files.read(place)
  const { attempt } = context
  if (!attempt) {
    const { bytes, answer } = make(found, false)
    if (bytes) await put(place, files, context, bytes)
    return answer
  }
  const path = relative(await realpath(context.root), place.real)
    .split(sep)
    .join('/')
  const before = found ? sha256Hex(found) : 'none'
  const earlier = await attempt.earlier()
  if (earlier && found && earlier.path === path && earlier.after === before) {
    noteFile(context, place, found)
    return answerOf(earlier)
  }
  if (earlier && (earlier.path !== path || earlier.before !== before)) {
    const words = `This call was cut off before, and ${place.shown} has changed since: whether it was done is not known`
    throw new Refusal(`${words}. Read the file, and do it again if it is not.`, 'changed')
  }
  const { bytes, answer } = make(found, earlier !== undefined)
  if (!bytes) return answer
  // Cut off, it is another attempt that may go on.
  if (context.signal.aborted) throw new BatonError('stopped')
  const { text, is_error, detail } = answer
  const told = { text, is_error, ...(detail ? { detail } : {}) }
  await attempt.note({ path, before, after: sha256Hex(bytes), answer: told })
  await put(place, files, context, bytes)
  return answer
}

async function put(
  place: InnerPath,
  files: SessionFiles,
  context: ToolContext,
  bytes: Uint8Array,
): Promise<void> {
  await files.replace(place, bytes)
  noteFile(context, place, bytes)
}

function answerOf({ answer: { text, is_error, detail } }: FileChange): ToolAnswer {
  return { text, is_error, ...(detail ? { detail } : {}) }
}
