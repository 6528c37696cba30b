import { defineConfig } from 'vitest/config'
import { LongestFirst } from './scripts/lib/longest-first.mjs'

const builds = { globalSetup: ['scripts/lib/vitest-setup.mjs'] }

/** One project a workspace: `npx vitest run --project relay`, or by a part of the path: `npx vitest run relay/test/lease`. */
function workspace(name: string, setup: Partial<typeof builds> = {}) {
  return {
    extends: true as const,
    test: { name, include: [`${name}/test/**/*.test.{ts,tsx}`], sequence: { groupOrder: 0 }, ...setup },
  }
}

export default defineConfig({
  test: {
    // Tests wait for conditions, never for a time; these deadlines only end what hangs.
    testTimeout: 60_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      workspace('shared'),
      workspace('relay'),
      workspace('client', builds),
      // Agents import the SDK by the name that it has inside a guest.
      {
        ...workspace('guest', builds),
        resolve: { alias: { baton: `${import.meta.dirname}/guest/src/sdk/baton.ts` } },
      },
      workspace('runner', builds),
      {
        extends: true,
        test: {
          name: 'test',
          include: ['test/test/**/*.test.ts'],
          ...builds,
          // Real processes and a browser: they mostly wait for one another, but only when the others are through.
          sequence: { groupOrder: 1 },
          testTimeout: 180_000,
        },
      },
    ],
  },
})
