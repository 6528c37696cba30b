import type { SessionInfo } from '@baton/shared/protocol.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import { lazy, Suspense, type ReactElement } from 'react'
import { compact, move, settings } from '../net/commands.ts'
import type { Runner } from '../store/account.ts'
import type { OutboxItem } from '../store/outbox.ts'
import { usePaired } from './hooks.ts'
import { MoveSheet } from './MoveSheet.tsx'
import type { Taps } from './taps.ts'

// Behind a tap each.
const ModeSheet = lazy(() => import('./ModeSheet.tsx'))
const Notes = lazy(() => import('./Notes.tsx'))
const SessionMenu = lazy(() => import('./SessionMenu.tsx'))

export type SheetName = 'move' | 'mode' | 'menu' | 'notes'

/** What lies over a session, one at a time: where it runs, its mode, its menu, its notes. */
export function SessionSheets({
  sheet,
  onSheet,
  taps,
  sid,
  session,
  transcript,
  outbox,
  runners,
  place,
  mode,
  ended,
  removed,
}: {
  sheet: SheetName | undefined
  onSheet: (sheet: SheetName | undefined) => void
  taps: Taps
  sid: string
  session: SessionInfo | undefined
  transcript: Transcript
  outbox: readonly OutboxItem[]
  runners: readonly Runner[]
  /** The runner whose models the menu offers. */
  place: string | undefined
  mode: Transcript['mode']
  ended: boolean
  removed: string | undefined
}): ReactElement {
  const { hub } = usePaired()
  const key = hub.keyOf(sid)
  const close = (): void => onSheet(undefined)
  return (
    <>
      {sheet === 'move' && !ended && (
        <MoveSheet
          runners={runners}
          holder={session?.holder}
          onMove={(to, label) => {
            close()
            taps.tap(move(key, sid, to, label))
          }}
          onClose={close}
        />
      )}
      <Suspense fallback={null}>
        {sheet === 'mode' && !ended && (
          <ModeSheet
            mode={mode ?? 'ask'}
            removed={removed}
            onChoose={(to) => {
              close()
              taps.changeMode(to)
            }}
            onClose={close}
          />
        )}
        {sheet === 'menu' && (
          <SessionMenu
            transcript={transcript}
            models={runners.find(({ device }) => device === place)?.about?.models ?? []}
            ended={ended}
            compacting={outbox.some(({ shown, state }) => shown.as === 'compact' && state !== 'refused')}
            removed={removed}
            onSettings={(changed) => taps.tap(settings(key, sid, changed))}
            onCompact={() => {
              close()
              taps.tap(compact(key, sid))
            }}
            onNotes={() => onSheet('notes')}
            onClose={close}
          />
        )}
        {sheet === 'notes' && (
          <Notes
            sid={sid}
            transcript={transcript}
            disabled={ended || removed !== undefined}
            onSave={taps.saveNote}
            onClose={close}
          />
        )}
      </Suspense>
    </>
  )
}
