import { lazy, Suspense, useEffect, type ReactElement } from 'react'
import { entrance, type Entrance } from './entrance.ts'
import { ConnectionBar } from './parts/ConnectionBar.tsx'
import { Guard } from './parts/Guard.tsx'
import { PairedContext, useCell, useMedia } from './parts/hooks.ts'
import { Mark } from './parts/icons.tsx'
import { TabBar } from './parts/TabBar.tsx'
import { UpdateBar } from './parts/UpdateBar.tsx'
import { route } from './router.ts'
import { Pair } from './screens/Pair.tsx'
import { Sessions } from './screens/Sessions.tsx'

// Not needed for the first picture; fetched right after it, so that the first tap does not wait.
const session = () => import('./screens/Session.tsx')
const settings = () => import('./screens/Settings.tsx')
const runners = () => import('./screens/Runners.tsx')
const Session = lazy(() => session().then((module) => ({ default: module.Session })))
const Runners = lazy(() => runners().then((module) => ({ default: module.Runners })))
const Settings = lazy(() => settings().then((module) => ({ default: module.Settings })))

export function App(): ReactElement {
  const state = useCell(entrance)
  return (
    <>
      <Guard>{state.at === 'paired' ? <Inside paired={state} /> : <Pair state={state} />}</Guard>
      <UpdateBar />
    </>
  )
}

function Inside({ paired }: { paired: Extract<Entrance, { at: 'paired' }> }): ReactElement {
  const { hub, drafts } = paired
  const at = useCell(route)
  const wide = useMedia('(min-width: 900px)')

  useEffect(() => {
    const wake = (): void => {
      if (document.visibilityState === 'visible') hub.nudge()
      else void drafts.flush()
    }
    const offline = (): void => hub.offline()
    const flush = (): void => void drafts.flush()
    document.addEventListener('visibilitychange', wake)
    addEventListener('pageshow', wake)
    addEventListener('online', wake)
    addEventListener('offline', offline)
    addEventListener('pagehide', flush)
    return () => {
      document.removeEventListener('visibilitychange', wake)
      removeEventListener('pageshow', wake)
      removeEventListener('online', wake)
      removeEventListener('offline', offline)
      removeEventListener('pagehide', flush)
    }
  }, [hub, drafts])

  useEffect(() => {
    // Failing here is no harm: the screen itself asks again.
    session()
      .then(runners)
      .then(settings, () => undefined)
  }, [])

  const in_session = at.at === 'session'
  const sid = in_session ? at.sid : undefined
  return (
    <PairedContext value={paired}>
      <div className={wide ? 'app wide' : 'app'}>
        <ConnectionBar />
        <div className="panes">
          {(wide || at.at === 'sessions') && <Sessions current={sid} />}
          {at.at !== 'sessions' && (
            <Guard key={sid ?? at.at}>
              <Suspense fallback={<div className="screen" />}>
                {sid !== undefined && <Session sid={sid} wide={wide} />}
                {at.at === 'runners' && <Runners />}
                {at.at === 'settings' && <Settings />}
              </Suspense>
            </Guard>
          )}
          {wide && at.at === 'sessions' && (
            <div className="screen nothing" aria-hidden>
              <Mark size={96} />
            </div>
          )}
        </div>
        {(wide || !in_session) && <TabBar at={in_session ? 'sessions' : at.at} />}
      </div>
    </PairedContext>
  )
}
