/** Bundles the agents that come with Baton into guest/dist/agents. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleAgent } from './bundle.ts'

export const builtInAgents = ['coder', 'toy'] as const

/** Writes the bundles; safe while others read them. */
export async function buildAgents(): Promise<void> {
  const dist = fileURLToPath(new URL('../dist/agents/', import.meta.url))
  mkdirSync(dist, { recursive: true })
  for (const name of builtInAgents) {
    const bundle = await bundleAgent(fileURLToPath(new URL(`./agents/${name}.ts`, import.meta.url)))
    const temporary = `${dist}${name}.js.${process.pid}.tmp`
    writeFileSync(temporary, bundle)
    renameSync(temporary, `${dist}${name}.js`)
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildAgents()
