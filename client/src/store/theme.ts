/** Light, dark or the system's; public/theme.js applies it before the first paint. */
import { Cell } from './cell.ts'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'baton-theme'
const PAPER = { light: '#f6f3ec', dark: '#141311' } as const

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    return 'system'
  }
}

export const theme = new Cell<Theme>('system')

export function startTheme(): void {
  theme.set(stored())
  apply(theme.get())
}

export function chooseTheme(value: Theme): void {
  theme.set(value)
  try {
    if (value === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, value)
  } catch {
    // It holds until the reload.
  }
  apply(value)
}

function apply(value: Theme): void {
  const { dataset } = document.documentElement
  if (value === 'system') delete dataset['theme']
  else dataset['theme'] = value
  // The bar of the phone around the page follows the choice, not only the system.
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name=theme-color]')) {
    const system = meta.media.includes('dark') ? 'dark' : 'light'
    meta.content = PAPER[value === 'system' ? system : value]
  }
}
