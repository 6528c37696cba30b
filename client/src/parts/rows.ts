import type { SessionInfo } from '@baton/shared/protocol.ts'
import {
  isThinking,
  liveOutputs,
  liveThought,
  liveTexts,
  retryOf,
  type Transcript,
} from '@baton/shared/view/transcript.ts'
import { useMemo } from 'react'
import { hasEnded, hasTrouble } from '../store/session.ts'
import type { Row } from './TranscriptRow.tsx'

/** The items, then what goes on right now. */
export function useRows(
  transcript: Transcript,
  session: SessionInfo | undefined,
  name: (device: string) => string,
  /** The runner that holds it and does not answer. */
  silent: string | undefined,
  /** Who takes it over if that lasts: another runner, or nobody. */
  heirs: boolean,
): readonly Row[] {
  return useMemo(() => {
    const rows: Row[] = [...transcript.items]
    const { lease, moving } = transcript
    const expired = lease?.change === 'expired'
    const texts = liveTexts(transcript)
    for (const [index, output] of liveOutputs(transcript)) {
      const item = rows[index]
      if (item?.kind === 'tool') rows[index] = { ...item, output }
    }
    for (const [effect, text] of texts) rows.push({ kind: 'live', id: `live${effect}`, text })
    if (hasEnded(session)) return rows
    const retry = retryOf(transcript)
    if (retry && !expired) rows.push({ kind: 'retrying', id: 'retrying', retry })
    else if (isThinking(transcript) && !expired) {
      const thought = liveThought(transcript)
      if (thought !== undefined) rows.push({ kind: 'thinking', id: 'thinking', thought })
      else if (texts.length === 0) rows.push({ kind: 'thinking', id: 'thinking' })
    }
    if (session?.status === 'idle' && hasTrouble(transcript)) rows.push({ kind: 'again', id: 'again' })
    if (expired && session?.status !== 'idle') {
      rows.push({ kind: 'away', id: 'away', runner: name(lease.holder) })
    }
    if (silent !== undefined && !expired) rows.push({ kind: 'silent', id: 'silent', runner: silent, heirs })
    if (moving) rows.push({ kind: 'moving', id: 'moving', moving })
    return rows
  }, [transcript, session?.status, name, silent, heirs])
}
