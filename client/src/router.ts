/** Where the app is: four places, in the address bar, so that Back and reload do what they should. */
import { Cell } from './store/cell.ts'

export type Route =
  { at: 'sessions' } | { at: 'session'; sid: string } | { at: 'runners' } | { at: 'settings' }

export function routeOf(path: string): Route {
  const session = /^\/s\/([A-Za-z0-9_-]{8,64})$/.exec(path)
  if (session?.[1]) return { at: 'session', sid: session[1] }
  if (path === '/runners') return { at: 'runners' }
  if (path === '/settings') return { at: 'settings' }
  return { at: 'sessions' }
}

export const route = new Cell<Route>({ at: 'sessions' })

export function startRouter(): void {
  const read = (): void => route.set(routeOf(location.pathname))
  addEventListener('popstate', read)
  read()
}

export function navigate(path: string, { replace = false } = {}): void {
  if (path === location.pathname) return
  history[replace ? 'replaceState' : 'pushState'](null, '', path)
  route.set(routeOf(path))
}
