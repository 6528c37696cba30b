import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Markdown } from '../src/parts/Markdown.tsx'

const html = (text: string): string => renderToStaticMarkup(<Markdown text={text} />)

test('C12: HTML of a model stays text; scripts, handlers and foreign addresses never become elements', () => {
  const out = html(
    '<script>alert(1)</script>\n\nhi <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](https://evil/x.png) [c](data:text/html,x)',
  )
  expect(out).not.toMatch(/<script|<img|href="(javascript|data)/i)
  expect(out).toContain('&lt;script&gt;')
  expect(out).toContain('href="https://evil/x.png"')
})

test('F65: code is one block with all of its lines, as text', () => {
  const out = html('```ts\nconst a = 1 < 2\n\nconst b = `${a}`\n```')
  expect(out.match(/<pre/g)).toHaveLength(1)
  expect(out).toContain('<code>const a = 1 &lt; 2\n\nconst b = `${a}`</code>')
})

test('F65: a table is a table, in a region that scrolls by itself', () => {
  const out = html('| a | b |\n|--:|---|\n| 1 | 2 |')
  expect(out).toMatch(/role="region".*<table>.*<th[^>]*text-align:right[^>]*>a<\/th>.*<td[^>]*>2<\/td>/)
})

test('what is unfinished while it streams shows, and nothing throws', () => {
  const whole =
    '# Title\n\nSome **bold** and `code`, a [link](https://x.y).\n\n- one\n  1. two\n\n> quote\n\n| a |\n|---|\n| b |\n\n```js\nx()\n```\n\n- [x] done'
  for (let end = 0; end <= whole.length; end++) html(whole.slice(0, end))
  expect(html(whole)).toContain(
    '<li><input type="checkbox" disabled="" aria-label="Task" checked=""/>done</li>',
  )
})

test('characters that Markdown writes as entities are themselves', () => {
  expect(html('a &amp; b &lt; c `&amp;`')).toContain('a &amp; b &lt; c <code>&amp;amp;</code>')
})
