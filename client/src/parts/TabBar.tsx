import type { ReactElement } from 'react'
import type { Route } from '../router.ts'
import { Icon, type IconName } from './icons.tsx'
import { Link } from './Link.tsx'

const TABS: readonly { to: string; at: Route['at']; name: string; icon: IconName }[] = [
  { to: '/', at: 'sessions', name: 'Sessions', icon: 'sessions' },
  { to: '/runners', at: 'runners', name: 'Runners', icon: 'laptop' },
  { to: '/settings', at: 'settings', name: 'Settings', icon: 'settings' },
]

export function TabBar({ at }: { at: Route['at'] }): ReactElement {
  return (
    <nav className="tabs" aria-label="Main">
      {TABS.map((tab) => (
        <Link key={tab.to} to={tab.to} {...(tab.at === at ? { 'aria-current': 'page' as const } : {})}>
          <Icon name={tab.icon} size={22} />
          <span>{tab.name}</span>
        </Link>
      ))}
    </nav>
  )
}
