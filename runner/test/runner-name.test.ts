import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runnerName } from '../src/cli/runner-name.ts'
import { saveRelay } from '../src/daemon/identity.ts'
import { defaultName } from '../src/daemon/runner.ts'

test('a runner is called as it was told, also when it starts again without being told', async () => {
  const data = await mkdtemp(join(tmpdir(), 'baton-name-'))
  try {
    expect(await runnerName(data, undefined)).toBe(defaultName())
    await saveRelay(data, { origin: 'http://127.0.0.1:1', about: { name: 'laptop', kind: 'laptop' } })
    // As `up` does, which may come to another port.
    await saveRelay(data, { origin: 'http://127.0.0.1:2' })
    expect(await runnerName(data, undefined)).toBe('laptop')
    expect(await runnerName(data, 'other')).toBe('other')
  } finally {
    await rm(data, { recursive: true })
  }
})
