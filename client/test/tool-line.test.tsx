import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { ToolItem } from '@baton/shared/view/items.ts'
import { ToolLine } from '../src/parts/ToolLine.tsx'

const item: ToolItem = {
  ...{ kind: 'tool', id: 'e1', at: 0, name: 'bash', input: { command: 'npm test' } },
  ...{ state: 'ok', attempt: 1, result: { text: 'passed', is_error: false } },
}
const html = (more: Partial<ToolItem>, open = true): string =>
  renderToStaticMarkup(<ToolLine item={{ ...item, ...more }} open={open} onToggle={() => undefined} />)

test('H18 C21: an opened call says by what it was allowed, where nobody was asked', () => {
  const rules = [{ tool: 'bash', prefix: 'npm test', action: 'allow' as const }]
  expect(html({ allowed: { rules } })).toContain(
    'Allowed by rule &quot;bash: npm test&quot;; nobody was asked.',
  )
  expect(html({ allowed: { mode: 'edit' } })).toContain('Allowed by mode edit; nobody was asked.')
  expect(html({ allowed: { mode: 'edit' } }, false)).not.toContain('nobody was asked')
  expect(html({})).not.toContain('nobody was asked')
})

test('H17: a call that was ended in its middle shows what it had printed', () => {
  const error = { code: 'interrupted', message: 'It was.', printed: 'ok 1\nok 2' }
  const { result: _, ...cut } = item
  const out = renderToStaticMarkup(
    <ToolLine item={{ ...cut, state: 'interrupted', error }} open onToggle={() => undefined} />,
  )
  expect(out).toContain('it may have run')
  expect(out).toMatch(/Output until then.*ok 1\nok 2/s)
})
