/** Other builds of Node, from the npm registry, fetched once into build/. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const BUILD = join(import.meta.dirname, '../../build')
const VERSION = '22.23.5'

/** Path of the Node 22 of a platform. */
export function otherNode(platform: 'linux-x64' | 'linux-arm64'): string {
  const home = join(BUILD, `node22-${platform}`)
  const binary = (folder: string): string => join(folder, `node_modules/node-${platform}/bin/node`)
  if (existsSync(binary(home))) return binary(home)
  // Whole or not at all: another test may look at the same time.
  const part = `${home}.${process.pid}`
  mkdirSync(part, { recursive: true })
  writeFileSync(join(part, 'package.json'), '{ "private": true }')
  const flags = ['--no-audit', '--no-fund', '--force', '--prefix', part]
  execFileSync('npm', ['install', ...flags, `node-${platform}@${VERSION}`], { cwd: part, stdio: 'pipe' })
  if (existsSync(home)) rmSync(part, { recursive: true, force: true })
  else renameSync(part, home)
  return binary(home)
}

/** Node for ARM64 under emulation: program and first arguments. */
export function armNode(): string[] {
  return ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', otherNode('linux-arm64')]
}
