/**
 * Draws the PNG icons from public/icon.svg: `node tools/icons.ts`, after a change of the SVG. Needs Chromium; the results
 * are kept in the repository.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { chromium } from 'playwright-core'

const PUBLIC = new URL('../public/', import.meta.url)
const PAPER = '#f6f3ec'

/** `share`: of the picture that the drawing fills; a mask may cut all but the middle 80 %. */
const ICONS = [
  { file: 'icon-180.png', px: 180, share: 1 },
  { file: 'icon-192.png', px: 192, share: 1 },
  { file: 'icon-512.png', px: 512, share: 1 },
  { file: 'icon-maskable-512.png', px: 512, share: 0.76 },
]

const svg = await readFile(new URL('icon.svg', PUBLIC), 'utf8')
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
})
try {
  for (const { file, px, share } of ICONS) {
    const page = await browser.newPage({ viewport: { width: px, height: px } })
    const inner = Math.round(px * share)
    await page.setContent(
      `<body style="margin:0;height:100vh;background:${PAPER};display:grid;place-items:center">` +
        `<div style="width:${inner}px;height:${inner}px">${svg}</div></body>`,
    )
    await writeFile(new URL(file, PUBLIC), await page.screenshot())
    await page.close()
  }
} finally {
  await browser.close()
}
