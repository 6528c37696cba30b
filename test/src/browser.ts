/** Debian's Chromium as a phone. */
import { chromium } from 'playwright-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export const PHONE = { width: 360, height: 740 } as const

/** @param env e.g. `ground.environment()`, so that the browser ends with the ground */
export function openBrowser(env: NodeJS.ProcessEnv = process.env): Promise<Browser> {
  const defined = Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ARGS,
    env: Object.fromEntries(defined),
  })
}

export interface Phone {
  page: Page
  context: BrowserContext
  /** Uncaught errors and console errors of the page so far. */
  errors: string[]
}

/** A phone of its own: 360×740 at two pixels a point, touch, its own storage and service worker. */
export async function openPhone(
  browser: Browser,
  { theme = 'light' }: { theme?: 'light' | 'dark' } = {},
): Promise<Phone> {
  const context = await browser.newContext({
    viewport: PHONE,
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
    colorScheme: theme,
    locale: 'en-GB',
    timezoneId: 'UTC',
  })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text())
  })
  return { page, context, errors }
}
