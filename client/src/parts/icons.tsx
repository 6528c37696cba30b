/** Icons, 24 × 24, drawn with the text colour. All are decoration: the control has the name. */
import type { ReactElement } from 'react'

const PATHS = {
  back: 'M15 5l-7 7 7 7',
  down: 'M6 9l6 6 6-6',
  up: 'M12 19V5M6 11l6-6 6 6',
  right: 'M9 6l6 6-6 6',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  cross: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v10H9zM5 15V5h10',
  sessions: 'M4 6h16M4 12h16M4 18h10',
  laptop: 'M5 6h14v9H5zM3 18.5h18',
  cloud: 'M7 18a4 4 0 0 1-.5-7.97A5.5 5.5 0 0 1 17.2 9.5 4.25 4.25 0 0 1 17 18z',
  settings: 'M4 7h9m4 0h3M4 17h3m4 0h9M15 4.5v5M9 14.5v5',
  clock: 'M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  warning: 'M12 9v4m0 3.2v.1M12 4L3 19.5h18z',
  image: 'M4 5h16v14H4zM4 16.5l4.5-4.5 4 4 3-3 4.5 4.5M15.5 9v.1',
  more: 'M5 12v.1M12 12v.1M19 12v.1',
  note: 'M6 4h12v16H6zM9 9h6M9 13h6',
  lock: 'M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6z',
} as const

export type IconName = keyof typeof PATHS | 'stop'

export function Icon({ name, size = 24 }: { name: IconName; size?: number }): ReactElement {
  if (name === 'stop') {
    return (
      <svg aria-hidden width={size} height={size} viewBox="0 0 24 24">
        <rect x="7" y="7" width="10" height="10" rx="2" fill="currentColor" />
      </svg>
    )
  }
  return (
    <svg aria-hidden width={size} height={size} viewBox="0 0 24 24">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth={size < 20 ? 2.25 : 1.75}
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  )
}

/** The mark: a baton, passed upwards. */
export function Mark({ size = 24 }: { size?: number }): ReactElement {
  return (
    <svg aria-hidden width={size} height={size} viewBox="0 0 24 24" className="mark">
      <g transform="rotate(-45 12 12)">
        <rect x="2" y="9.5" width="20" height="5" rx="2.5" fill="var(--accent-fill)" />
        <path d="M7 9.5v5M17 9.5v5" stroke="var(--paper)" strokeWidth="1.4" />
      </g>
    </svg>
  )
}
