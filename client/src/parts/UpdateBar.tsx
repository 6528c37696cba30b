import { useEffect, useState, type ReactElement } from 'react'
import { registerSW } from 'virtual:pwa-register'

/** A new version waits until the person says so: no reload takes a half-typed sentence away. */
export function UpdateBar(): ReactElement | null {
  const [update, setUpdate] = useState<(() => void) | undefined>()
  useEffect(() => {
    // Only over HTTPS or on localhost; over plain HTTP the app works without.
    if (!('serviceWorker' in navigator)) return
    const install = registerSW({
      onNeedRefresh: () => setUpdate(() => () => void install(true)),
    })
  }, [])
  if (!update) return null
  return (
    <div className="bar" role="status">
      <p>A new version of Baton is ready.</p>
      <button type="button" className="button" onClick={update}>
        Update
      </button>
    </div>
  )
}
