import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { bundleAgent } from '../src/bundle.ts'

const folder = mkdtempSync(join(tmpdir(), 'baton-bundle-'))
afterAll(() => rmSync(folder, { recursive: true }))
function file(name: string, source: string): string {
  writeFileSync(join(folder, name), source)
  return join(folder, name)
}

test('an agent and what it imports become one script, the same bytes every time', async () => {
  file('words.ts', `export const word: string = 'imported'`)
  const agent = file(
    'agent.ts',
    `import { emit } from 'baton'\nimport { word } from './words.ts'\nexport default () => emit('x', word)`,
  )
  const bundle = Buffer.from(await bundleAgent(agent)).toString()
  expect(bundle).toContain('imported')
  expect(bundle).toContain('__batonDeliver')
  expect(bundle).not.toMatch(/^\s*import /m)
  expect(bundle).not.toContain(folder)
  expect(Buffer.from(await bundleAgent(agent)).toString()).toBe(bundle)
})

test.each([
  ['a syntax error', 'export default function main( {', /can't be bundled/],
  [
    'an import of Node',
    `import 'node:fs'\nexport default () => 1`,
    /imports "node:fs", which a guest does not have/,
  ],
  ['an import of Node without a prefix', `import 'fs'\nexport default () => 1`, /imports "fs"/],
  ['an import that does not exist', `import './nothing.ts'\nexport default () => 1`, /nothing\.ts/],
  ['no default export', `export const main = 1`, /default/],
])('%s is refused with a clear message', async (_, source, message) => {
  await expect(bundleAgent(file('bad.ts', source))).rejects.toThrow(message)
})

test('a missing file is refused', async () => {
  await expect(bundleAgent(join(folder, 'nowhere.ts'))).rejects.toThrow(/there is no file/)
})
