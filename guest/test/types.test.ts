/** What runs in a guest is checked without Node's types, so that it can't reach for what is not there. */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const guest = join(import.meta.dirname, '..')
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

function check(): string {
  try {
    return execFileSync(
      process.execPath,
      [tsc, '--project', join(guest, 'tsconfig.guest.json'), '--pretty', 'false'],
      { encoding: 'utf8' },
    )
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}

test('SDK and agents need nothing but the language; a use of Node is an error', () => {
  expect(check()).toBe('')
  const stray = join(guest, 'src/agents/stray.ts')
  writeFileSync(stray, 'export default () => process.env')
  try {
    expect(check()).toMatch(/stray\.ts.*Cannot find name 'process'/)
  } finally {
    rmSync(stray)
  }
})
