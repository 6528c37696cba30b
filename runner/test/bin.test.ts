import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const bin = fileURLToPath(new URL('../bin/baton.mjs', import.meta.url))
const manifest = fileURLToPath(new URL('../package.json', import.meta.url))
const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }

const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })`
const { npm_node_execpath: npms } = process.env
const nodes: [name: string, node: string, flags: string[]][] = [
  ['a Node that is new enough', process.execPath, []],
  [
    'one that says it is old',
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(old)}`],
  ],
  // Perhaps one that is old indeed, and lacks what new ones have.
  ...(npms === undefined ? [] : [['the Node of npm', npms, []] satisfies [string, string, string[]]]),
]

describe.each(nodes)('the baton command under %s', (_, node, flags) => {
  test('says its version, and what it refuses, with the exit code', () => {
    const said = (...args: string[]): [number | null, string, string] => {
      const { status, stdout, stderr } = spawnSync(node, [...flags, bin, ...args], {
        encoding: 'utf8',
      })
      return [status, stdout, stderr]
    }
    expect(said('--version')).toEqual([0, `${version}\n`, ''])
    expect(said('nonsense')).toEqual([2, '', expect.stringContaining('There is no command "nonsense"')])
  })

  test('hands a signal on: nothing of it is left', async () => {
    const data = mkdtempSync(join(tmpdir(), 'baton-bin-'))
    const args = [...flags, bin, 'relay', '--port', '0', '--data', data]
    const child = spawn(node, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    // Its output ends when the last one that writes there has ended.
    const ended = once(child.stdout.resume(), 'close')
    child.kill('SIGTERM')
    await ended
    rmSync(data, { recursive: true })
  })
})
