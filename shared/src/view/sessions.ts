/** Where a session stands in a list, and what it is called. Pure. */
import type { SessionInfo } from '../protocol.ts'

/** A list is an inbox in three parts: what needs a person, what runs, what is parked. */
export type Part = 'needs-you' | 'running' | 'parked'

export function partOf(session: SessionInfo): Part {
  switch (session.status) {
    case 'waiting':
    case 'failed':
      return 'needs-you'
    case 'running':
    case 'moving':
      return 'running'
    case 'idle':
    case 'done':
      return session.pending > 0 ? 'running' : 'parked'
  }
}

/** Nothing comes of it any more. */
export function hasEnded({ status }: Pick<SessionInfo, 'status'>): boolean {
  return status === 'done' || status === 'failed'
}

/** A session's title from its first prompt: the first line, cut at a word. */
export function titleOf(prompt: string): string {
  const line = prompt.trim().split('\n', 1)[0] ?? ''
  if (line.length <= TITLE_CHARS_MAX) return line
  const cut = line.slice(0, TITLE_CHARS_MAX)
  const space = cut.lastIndexOf(' ')
  return `${space > TITLE_CHARS_MAX / 2 ? cut.slice(0, space) : cut}…`
}

const TITLE_CHARS_MAX = 80
