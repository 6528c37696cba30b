import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { afterAll, expect, test, vi } from 'vitest'
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

function pack(name: string, files: Record<string, string>): void {
  for (const [path, source] of Object.entries(files)) {
    const whole = join(folder, 'node_modules', name, path)
    mkdirSync(dirname(whole), { recursive: true })
    writeFileSync(whole, source)
  }
}

test('npm packages come along: ES modules, CommonJS, export conditions, dynamic imports, JSON', async () => {
  pack('esm-pack', {
    'package.json': JSON.stringify({
      name: 'esm-pack',
      type: 'module',
      exports: { '.': { node: './node.js', default: './index.js' } },
    }),
    'index.js': `export const esm = 'from esm ' + process.env.NODE_ENV`,
    'node.js': `import 'node:fs'`,
  })
  pack('cjs-pack', {
    'package.json': JSON.stringify({ name: 'cjs-pack', main: './main.cjs' }),
    'main.cjs': `const { word } = require('./word.json')\nmodule.exports = { cjs: 'from ' + word }`,
    'word.json': `{ "word": "commonjs" }`,
  })
  file('later.ts', `export const later = 'loaded later'`)
  const agent = file(
    'packs.ts',
    `import { emit } from 'baton'
import { esm } from 'esm-pack'
import packed from 'cjs-pack'
export default async function main(): Promise<void> {
  const { later } = await import('./later.ts')
  emit('said', [esm, packed.cjs, later])
}`,
  )
  const said: unknown[] = []
  const code = Buffer.from(await bundleAgent(agent)).toString()
  const __batonHost = {
    ask: (request: string) => said.push(JSON.parse(request)),
    block: () => '',
    sha256: () => '',
    end: () => said.push('end'),
  }
  const sandbox = createContext({ __batonHost })
  runInContext(code, sandbox)
  const start = { type: 'start', seed: '', now: 0, mode: 'full', tools: [], about: {}, settings: {} }
  runInContext(`__batonDeliver(${JSON.stringify(JSON.stringify(start))})`, sandbox)
  await vi.waitUntil(() => said.includes('end'))
  expect(said[0]).toMatchObject({
    input: { data: ['from esm production', 'from commonjs', 'loaded later'] },
  })
})

test('everything that only Node has is named at once, with who imports it', async () => {
  pack('node-pack', {
    'package.json': JSON.stringify({ name: 'node-pack', main: './main.cjs' }),
    'main.cjs': `module.exports = require('path')`,
  })
  const agent = file(
    'reads.ts',
    `import { readFileSync } from 'node:fs'\nimport path from 'node-pack'\nexport default () => [path, readFileSync]`,
  )
  const refused = expect(bundleAgent(agent)).rejects
  await refused.toThrow(/reads\.ts imports "node:fs"/)
  await expect(bundleAgent(agent)).rejects.toThrow(/main\.cjs imports "path".*reached by tools/)
})

test('too much code is refused with its size', async () => {
  const agent = file('large.ts', `export default () => ${JSON.stringify('x'.repeat(5 << 20))}`)
  await expect(bundleAgent(agent)).rejects.toThrow(/5\.\d MB of code; at most 4 MB/)
})

test.each([
  ['a syntax error', 'export default function main( {', /can't be bundled/],
  [
    'an import of Node',
    `import 'node:fs'\nexport default () => 1`,
    /imports "node:fs", which a guest does not have/,
  ],
  ['an import of Node without a prefix', `import 'fs'\nexport default () => 1`, /imports "fs"/],
  [
    'an import that does not exist',
    `import './nothing.ts'\nexport default () => 1`,
    /nothing\.ts[^]*mend the path/,
  ],
  [
    'a package that is not installed',
    `import 'no-such-package'\nexport default () => 1`,
    /"no-such-package"[^]*npm install/,
  ],
  ['no default export', `export const main = 1`, /exports its main function as default/],
])('%s is refused with a clear message', async (_, source, message) => {
  await expect(bundleAgent(file('bad.ts', source))).rejects.toThrow(message)
})

test('a missing file is refused', async () => {
  await expect(bundleAgent(join(folder, 'nowhere.ts'))).rejects.toThrow(/there is no file/)
})
