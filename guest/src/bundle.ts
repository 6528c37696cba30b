/** Turns an agent's file and everything that it imports into the one script that a guest loads. */
import { existsSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown, type Plugin } from 'rolldown'

const sdk = (file: string): string => fileURLToPath(new URL(`./sdk/${file}`, import.meta.url))
const entry = '\0baton-entry'
const builtins = new Set(builtinModules)

/** The agent can't be bundled; the message says why and where. */
export class BundleError extends Error {
  override name = 'BundleError'
}

/** A guest loads the whole script before anything else, on every machine that it comes to. */
const BUNDLE_BYTES_MAX = 4 << 20

/**
 * Bundles an agent: a module whose default export is its main function, with the npm packages that it imports. Same input, same
 * bytes. Types are not checked. Throws BundleError for a missing file, a syntax error, an import that does not exist or that
 * only Node has, no default export, too much code.
 */
export async function bundleAgent(file: string): Promise<Uint8Array> {
  const path = resolve(file)
  if (!existsSync(path)) throw new BundleError(`there is no file ${file}`)
  const refused = new Map<string, string>()
  let code: string
  try {
    const build = await rolldown({
      input: entry,
      platform: 'neutral',
      // No file paths in the output: the same agent is the same bundle wherever it lies.
      experimental: { attachDebugInfo: 'none' },
      logLevel: 'silent',
      resolve: { mainFields: ['module', 'main'], conditionNames: ['import', 'default'] },
      // Packages ask for it, and a guest has no environment.
      transform: { define: { 'process.env.NODE_ENV': '"production"' } },
      plugins: [agentPlugin(path, refused)],
    })
    const { output } = await build.generate({
      format: 'iife',
      comments: false,
      sourcemap: false,
      codeSplitting: false,
    })
    await build.close()
    code = output[0].code
  } catch (cause) {
    if (refused.size > 0) throw new BundleError(refusal(file, refused), { cause })
    const message = plain(cause instanceof Error ? cause.message : String(cause))
    throw new BundleError(`${file} can't be bundled: ${message}${advice(message)}`, { cause })
  }
  if (refused.size > 0) throw new BundleError(refusal(file, refused))
  const bundle = new TextEncoder().encode(code)
  if (bundle.length > BUNDLE_BYTES_MAX) {
    const megabytes = (bundle.length / (1 << 20)).toFixed(1)
    throw new BundleError(
      `${file} and what it imports are ${megabytes} MB of code; at most ${BUNDLE_BYTES_MAX >> 20} MB: import less`,
    )
  }
  return bundle
}

function refusal(file: string, refused: ReadonlyMap<string, string>): string {
  const imports = Array.from(refused, ([id, from]) => `${from} imports ${JSON.stringify(id)}`).join(', ')
  return `${file} can't be bundled: ${imports}, which a guest does not have; files, commands and the network are reached by tools`
}

function advice(message: string): string {
  if (/"default" is not exported|default.*is not exported/i.test(message)) {
    return '\nAn agent exports its main function as default: export default async function main() { … }'
  }
  return /could not resolve|unresolved/i.test(message)
    ? '\nInstall the package beside the agent (npm install), or mend the path; relative imports need their extension.'
    : ''
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

function agentPlugin(agent: string, refused: Map<string, string>): Plugin {
  return {
    name: 'baton-agent',
    async resolveId(id, importer, { kind }) {
      if (id === entry) return entry
      if (id === 'baton') return sdk('baton.ts')
      if (id.startsWith('node:') || builtins.has(id)) {
        // All of them are named at once.
        refused.set(id, importer === undefined ? 'the agent' : relative(process.cwd(), importer))
        return { id, external: true }
      }
      // The bundler would leave it out with a warning. A package may try to require what need not be there.
      const isPackage = /^[@\w]/.test(id) && kind !== 'require-call'
      if (isPackage && !(await this.resolve(id, importer, { skipSelf: true, kind }))) {
        throw new Error(`Could not resolve ${JSON.stringify(id)}`)
      }
      return null
    },
    load(id) {
      if (id !== entry) return null
      return `import main from ${JSON.stringify(agent)}\nimport { run } from ${JSON.stringify(sdk('runtime.ts'))}\nrun(main)\n`
    },
  }
}
