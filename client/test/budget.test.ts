import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { DIST } from './ground.ts'

const KB_MAX = 120

/** Every script that the page loads before it can show anything: those of the HTML, and what they import statically. */
function firstLoad(): string[] {
  const html = readFileSync(join(DIST, 'index.html'), 'utf8')
  const found = new Set([...html.matchAll(/(?:src|href)="\/([^"]+\.js)"/g)].map(([, path]) => path ?? ''))
  for (const path of found) {
    const code = readFileSync(join(DIST, path), 'utf8')
    for (const [, name] of code.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g))
      found.add(`assets/${name}`)
  }
  return [...found]
}

describe('the built client', () => {
  test('C13: the first load is within its budget', () => {
    const scripts = firstLoad()
    expect(scripts.length).toBeGreaterThan(1)
    const kb = scripts.reduce((sum, path) => sum + gzipSync(readFileSync(join(DIST, path))).length, 0) / 1024
    expect(kb).toBeLessThanOrEqual(KB_MAX)
  })

  test('C13: nothing is loaded from elsewhere, and no script stands in the page', () => {
    const html = readFileSync(join(DIST, 'index.html'), 'utf8')
    expect(html).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/)
    const styles = readdirSync(join(DIST, 'assets')).filter((name) => name.endsWith('.css'))
    for (const name of styles)
      expect(readFileSync(join(DIST, 'assets', name), 'utf8')).not.toMatch(/url\(\s*["']?https?:/)
  })

  test('it can be installed: a manifest with a name, a start and icons that are there', () => {
    const manifest = JSON.parse(readFileSync(join(DIST, 'manifest.webmanifest'), 'utf8')) as {
      name: string
      start_url: string
      display: string
      icons: { src: string; purpose?: string }[]
    }
    expect(manifest).toMatchObject({ name: 'Baton', start_url: '/', display: 'standalone' })
    for (const { src } of manifest.icons) expect(existsSync(join(DIST, src))).toBe(true)
    expect(manifest.icons.some(({ purpose }) => purpose === 'maskable')).toBe(true)
  })
})
