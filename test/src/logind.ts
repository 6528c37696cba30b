/**
 * A system bus with a login manager of the test: a real `dbus-daemon` on a socket of its own, and on it logind's interface
 * (logind-mock.py), which hands out real locks and measures when they are let go. Baton finds it by DBUS_SYSTEM_BUS_ADDRESS.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Process } from './process.ts'
import type { Ground } from './processes.ts'
import { until } from './until.ts'

/** Debian's own, which has the bindings of GLib. */
const PYTHON = '/usr/bin/python3'
const MOCK = join(import.meta.dirname, 'logind-mock.py')

const Happened = v.variant('t', [
  v.object({ t: v.literal('ready') }),
  v.object({ t: v.literal('inhibited'), what: v.string(), who: v.string(), mode: v.string() }),
  v.object({ t: v.literal('going'), signal: v.string(), locks: v.number() }),
  /** `after_ms`: since it was said that the machine goes; null when it does not. `left`: locks that are still held. */
  v.object({ t: v.literal('released'), after_ms: v.nullable(v.number()), left: v.number() }),
  /** `held`: locks that nobody let go in time. */
  v.object({ t: v.literal('asleep'), after_ms: v.number(), held: v.number() }),
  v.object({ t: v.literal('awake') }),
])
export type Happened = v.InferOutput<typeof Happened>

export class Logind {
  readonly address: string
  readonly bus: Process
  readonly process: Process

  private constructor(address: string, bus: Process, process: Process) {
    this.address = address
    this.bus = bus
    this.process = process
  }

  static async start(ground: Ground, { delay_ms = 5_000 } = {}): Promise<Logind> {
    const folder = await ground.newFolder('bus')
    const address = `unix:path=${join(folder, 'socket')}`
    const config = join(folder, 'bus.conf')
    await writeFile(
      config,
      `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>${address}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="false"/>
    <allow receive_sender="*" eavesdrop="false"/>
  </policy>
</busconfig>
`,
    )
    const bus = await ground.start('dbus-daemon', 'dbus-daemon', [
      '--nofork',
      '--print-address',
      `--config-file=${config}`,
    ])
    await bus.waitForOutput(/unix:path=/)
    const env = { DBUS_SYSTEM_BUS_ADDRESS: address }
    const mock = await ground.start('logind', PYTHON, [MOCK, String(delay_ms)], { env })
    const logind = new Logind(address, bus, mock)
    await logind.until('ready', 'logind is there')
    return logind
  }

  /** For what is to find it. */
  get env(): NodeJS.ProcessEnv {
    return { DBUS_SYSTEM_BUS_ADDRESS: this.address }
  }

  get happened(): Happened[] {
    const lines = this.process.output.split('\n').filter((line) => line.startsWith('{'))
    return lines.map((line) => v.parse(Happened, JSON.parse(line)))
  }

  all<T extends Happened['t']>(t: T): Extract<Happened, { t: T }>[] {
    return this.happened.filter((one): one is Extract<Happened, { t: T }> => one.t === t)
  }

  /** Waits for the n-th of a kind, from 1. */
  async until<T extends Happened['t']>(t: T, what: string, n = 1): Promise<Extract<Happened, { t: T }>> {
    await this.process.waitFor(what, () => this.all(t).length >= n)
    return until(what, () => this.all(t)[n - 1])
  }

  sleep(): void {
    this.process.kill('SIGUSR1')
  }

  wake(): void {
    this.process.kill('SIGUSR2')
  }

  shutDown(): void {
    this.process.kill('SIGHUP')
  }
}
