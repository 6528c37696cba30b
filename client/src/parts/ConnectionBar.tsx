import { ERRORS } from '@baton/shared/errors.ts'
import type { ConnectionState } from '@baton/shared/connection.ts'
import { useEffect, useState, type ReactElement } from 'react'
import { leave } from '../entrance.ts'
import { useCell, useNow, useOffline, usePaired } from './hooks.ts'

/** A break shorter than this is nobody's business (F2). */
const QUIET_MS = 3_000

/** Words only when the connection has been away for a while, and always what happens to what one types. */
export function ConnectionBar(): ReactElement | null {
  const { hub } = usePaired()
  const state = useCell(hub.connection)
  const unsent = useCell(hub.outbox.items).filter((item) => item.state !== 'acknowledged').length
  const away = state.at !== 'open'
  const offline = useOffline()
  const [long, setLong] = useState(false)
  useEffect(() => {
    if (!away) {
      setLong(false)
      return
    }
    const timer = setTimeout(() => setLong(true), QUIET_MS)
    return () => clearTimeout(timer)
  }, [away])
  if (state.at === 'refused') return <Refused state={state} unsent={unsent} />
  if (!away || !(long || offline)) return null
  return (
    <div className="bar" role="status">
      <p>
        <strong>{offline ? 'This device is offline.' : 'No connection to the relay.'}</strong>{' '}
        <WaitingWords state={state} />{' '}
        {unsent > 0
          ? `What you typed is kept here (${unsent}) and sent when it is back.`
          : 'What you type is kept here and sent when it is back.'}
      </p>
      <button type="button" className="button" onClick={() => hub.nudge()}>
        Try now
      </button>
    </div>
  )
}

function WaitingWords({ state }: { state: ConnectionState }): ReactElement {
  const now = useNow(1_000)
  if (state.at !== 'waiting') return <>Connecting…</>
  const seconds = Math.max(1, Math.ceil((state.retry_at - now) / 1000))
  // By eye only: read aloud every second it would be noise.
  return <span aria-hidden>Next try in {seconds} s.</span>
}

function Refused({
  state,
  unsent,
}: {
  state: Extract<ConnectionState, { at: 'refused' }>
  unsent: number
}): ReactElement {
  const { hub } = usePaired()
  const pair_again = state.code === 'device-revoked' || state.code === 'bad-signature'
  return (
    <div className="bar problem" role="alert">
      <p>
        <strong>{ERRORS[state.code].what}</strong> {ERRORS[state.code].todo}
        {unsent > 0 && ` ${unsent} of your messages were not sent.`}
      </p>
      <button
        type="button"
        className="button"
        onClick={() => {
          if (!pair_again) hub.restart()
          else if (confirm('Forget what this device holds of the account, and pair again?')) void leave()
        }}
      >
        {pair_again ? 'Pair again' : 'Try again'}
      </button>
    </div>
  )
}

/** The quiet sign: a dot with a name. */
export function ConnectionDot(): ReactElement {
  const { hub } = usePaired()
  const { at } = useCell(hub.connection)
  const offline = useOffline()
  const words = at === 'open' ? 'Connected' : at === 'connecting' && !offline ? 'Connecting' : 'Not connected'
  return (
    <span className={`dot ${at}`} role="img" aria-label={words} title={words}>
      <span />
    </span>
  )
}
