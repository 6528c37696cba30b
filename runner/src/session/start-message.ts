/**
 * The message that starts a guest: what the agent may know of where it runs, and the tools that it may call. A long one does not fit
 * into its entry: it lies beside it, in a sealed blob.
 */
import { basename } from 'node:path'
import type { BlobStore } from '@baton/shared/blobs.ts'
import { fromUtf8, utf8 } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { StartMessage, ToolSpec } from '@baton/shared/guest.ts'
import type { Received, StartCommand } from '@baton/shared/journal.ts'
import { sessionSeed } from '@baton/shared/keys.ts'
import type { Tool } from '../tools/tool.ts'
import type { Workspace } from '../workspace/workspace.ts'
import { readInstructions } from './instructions.ts'
import type { SessionOptions } from './options.ts'

/** A message longer than this goes into a blob, as long results do. */
const INLINE_BYTES = 32 << 10
/** Characters of one tool's description and schema as JSON: each request to the model carries them. */
const SPEC_CHARS = 32 << 10
const TOOLS_MAX = 512

type StartReceived = Extract<Received, { kind: 'start' }>

interface Store {
  blobs: BlobStore
  sid: string
  key: Uint8Array
}

export async function startMessage(
  options: SessionOptions,
  sid: string,
  command: StartCommand,
  tools: ToolSpec[],
  workspace: Workspace,
): Promise<StartMessage> {
  // Files that live in the session are not where the root seems to be.
  const root = workspace.stay?.files ? undefined : workspace.root
  const [about, instructions] = await Promise.all([workspace.about(), readInstructions(root)])
  return {
    type: 'start',
    seed: sessionSeed(options.account, sid),
    now: Date.now(),
    mode: command.mode,
    tools,
    about: {
      ...{ workspace: basename(command.workspace), branch: about.branch, platform: about.platform },
      ...(instructions === undefined ? {} : { instructions }),
    },
    settings: command.settings ?? {},
  }
}

/** The tools that a session begins with; `tell` says which are left out, for they are too large or too many. */
export function boundedTools(tools: Tool[], tell: (text: string) => void): Tool[] {
  const isLarge = ({ spec }: Tool): boolean => JSON.stringify(spec).length > SPEC_CHARS
  const fit = tools.filter((tool) => !isLarge(tool))
  const left = [...tools.filter(isLarge), ...fit.slice(TOOLS_MAX)].map(({ spec }) => spec.name)
  if (left.length > 0) {
    const limits = `A session takes ${TOOLS_MAX} tools, each with at most ${SPEC_CHARS >> 10} KB of description and schema.`
    const names =
      left.length > 8 ? `${left.slice(0, 8).join(', ')} and ${left.length - 8} more` : left.join(', ')
    tell(`Tools are missing in this session, they are too large or too many: ${names}. ${limits}`)
  }
  return fit.slice(0, TOOLS_MAX)
}

/** What the entry says of the message, and the blobs that it then refers to. */
export async function keptStart(
  { blobs, sid, key }: Store,
  message: StartMessage,
): Promise<{ body: Pick<StartReceived, 'start' | 'start_blob'>; blobs: string[] }> {
  const bytes = utf8(JSON.stringify(message))
  if (bytes.length <= INLINE_BYTES) return { body: { start: message }, blobs: [] }
  const hash = await blobs.put(sid, key, bytes)
  const access = Object.fromEntries(message.tools.map((tool) => [tool.name, tool.access]))
  return { body: { start_blob: { hash, access } }, blobs: [hash] }
}

/** Throws BatonError `journal-gap` for an entry that starts nothing, `no-blob`, `bad-blob`, `cannot-open`. */
export async function readStart({ blobs, sid, key }: Store, body: Received): Promise<StartMessage> {
  if (body.kind === 'start' && body.start) return body.start
  if (body.kind !== 'start' || !body.start_blob) throw new BatonError('journal-gap', '(start)')
  return JSON.parse(fromUtf8(await blobs.get(sid, key, body.start_blob.hash))) as StartMessage
}
