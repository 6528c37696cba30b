/**
 * `npm run check [-- --fix]`: format, lint, types, and the repository's own rules. One line a step; a step that fails shows
 * why and what to do. `--fix` repairs what a program can repair.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensurePackages } from './lib/packages.mjs'
import { node24, run } from './lib/process.mjs'
import { script } from './lib/progress.mjs'
import { root } from './lib/root.mjs'

const fix = process.argv.includes('--fix')

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {string[]} command arguments of Node 24; packages are called by their file, so that no PATH matters
 * @property {string} [todo]
 * @property {boolean} [selfReporting] prints its own lines
 */

/** @type {Step[]} */
const steps = [
  {
    name: 'format',
    command: [
      'node_modules/prettier/bin/prettier.cjs',
      fix ? '--write' : '--check',
      '--log-level',
      'warn',
      '.',
    ],
    todo: 'Run: npm run format',
  },
  {
    name: 'lint',
    command: ['node_modules/oxlint/bin/oxlint', ...(fix ? ['--fix'] : [])],
    todo: 'Correct the code; a rule is switched off in .oxlintrc.json, with its reason, or not at all.',
  },
  ...typedFolders().map((folder) => ({
    name: `types of ${folder}`,
    command: ['node_modules/typescript/bin/tsc', '--project', folder, '--pretty', 'false'],
  })),
  { name: 'own rules', command: ['test/src/check/main.ts', ...(fix ? ['--fix'] : [])], selfReporting: true },
]

/** Folders with a tsconfig.json; a workspace without one would go unchecked. */
function typedFolders() {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
    .filter(({ name }) =>
      readdirSync(join(root, name)).some((file) => /^(package|tsconfig)\.json$/.test(file)),
    )
    .map(({ name }) => name)
}

/** @param {string} text */
const indent = (text) => text.trim().replace(/^/gm, '      ')

await script(async () => {
  await ensurePackages()
  let failed = 0
  for (const { name, command, todo, selfReporting = false } of steps) {
    const { code, output } = await run(node24, command, { capture: true })
    if (code !== 0) failed++
    if (selfReporting) process.stdout.write(output)
    else if (code === 0) console.log(`ok    ${name}`)
    else console.log(`FAIL  ${name}\n${indent(output)}${todo === undefined ? '' : `\n${indent(todo)}`}`)
  }
  console.log(failed === 0 ? 'All checks passed.' : `${failed} of ${steps.length} steps failed.`)
  return failed === 0 ? 0 : 1
})
