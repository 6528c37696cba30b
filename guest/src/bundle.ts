/** Turns an agent's file and everything that it imports into the one script that a guest loads. */
import { existsSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown, type Plugin } from 'rolldown'

const sdk = (file: string): string => fileURLToPath(new URL(`./sdk/${file}`, import.meta.url))
const entry = '\0baton-entry'
const builtins = new Set(builtinModules)

/** The agent can't be bundled; the message says why and where. */
export class BundleError extends Error {
  override name = 'BundleError'
}

/**
 * Bundles an agent: a module whose default export is its main function. Same input, same bytes.
 * Throws BundleError for a missing file, a syntax error, an import that does not exist or that only Node has.
 */
export async function bundleAgent(file: string): Promise<Uint8Array> {
  const path = resolve(file)
  if (!existsSync(path)) throw new BundleError(`there is no file ${file}`)
  const refused: string[] = []
  try {
    const build = await rolldown({
      input: entry,
      platform: 'neutral',
      // No file paths in the output: the same agent is the same bundle wherever it lies.
      experimental: { attachDebugInfo: 'none' },
      logLevel: 'silent',
      resolve: { mainFields: ['module', 'main'], conditionNames: ['import', 'default'] },
      plugins: [agentPlugin(path, refused)],
    })
    const { output } = await build.generate({ format: 'iife', comments: false, sourcemap: false })
    await build.close()
    return new TextEncoder().encode(output[0].code)
  } catch (cause) {
    const message = refused[0] ?? plain(cause instanceof Error ? cause.message : String(cause))
    throw new BundleError(`${file} can't be bundled: ${message}`, { cause })
  }
}

/** The bundler's message without colours, stack lines and the name of our entry. */
function plain(message: string): string {
  // oxlint-disable-next-line no-control-regex -- removing control characters is the purpose
  const text = message.replace(/\u001b\[[0-9;]*m|\0/g, '')
  return text
    .split('\n')
    .filter((line) => !/^\s+at /.test(line))
    .join('\n')
    .trim()
}

function agentPlugin(agent: string, refused: string[]): Plugin {
  return {
    name: 'baton-agent',
    resolveId(id, importer) {
      if (id === entry) return entry
      if (id === 'baton') return sdk('baton.ts')
      if (id.startsWith('node:') || builtins.has(id)) {
        const from = importer ?? 'the agent'
        refused.push(`${from} imports ${JSON.stringify(id)}, which a guest does not have; use tools instead`)
        throw new Error(refused[0])
      }
      return null
    },
    load(id) {
      if (id !== entry) return null
      return `import main from ${JSON.stringify(agent)}\nimport { run } from ${JSON.stringify(sdk('runtime.ts'))}\nrun(main)\n`
    },
  }
}
