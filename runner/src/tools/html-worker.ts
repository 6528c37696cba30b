/** Makes Markdown of a page, in a thread of its own: a page may be built to take very long. */
import { parentPort, workerData } from 'node:worker_threads'
import Turndown from 'turndown'

const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' })
turndown.remove(['script', 'style', 'noscript', 'iframe', 'template', 'title'])
turndown.addRule('no data', {
  filter: (node) => node.nodeName === 'IMG' && (node.getAttribute('src') ?? '').startsWith('data:'),
  replacement: () => '',
})
const html = String(workerData)
const [, title = ''] = /<title[^>]*>([^<]*)/i.exec(html) ?? []
const body = turndown.turndown(html)
parentPort?.postMessage(
  title.trim() === '' ? body : `${turndown.turndown(`<p>${title.trim()}</p>`)}\n\n${body}`,
)
