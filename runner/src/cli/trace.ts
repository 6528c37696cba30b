/** `baton trace`: what a session did, when, and what it cost, as a waterfall. */
import type { Opened } from '@baton/shared/entries.ts'
import { traceOf } from '@baton/shared/trace.ts'
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import { print } from './output.ts'
import { waterfall } from './waterfall.ts'

const COLUMNS = 80
const SHORT = 8

export async function trace(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('trace', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const entries: Opened[] = []
    for await (const entry of view.entries(sid)) entries.push(entry)
    const read = traceOf(entries)
    const { runners } = await view.list()
    const names = new Map(runners.map(({ device, about }) => [device, about.name]))
    const columns = process.stdout.columns ?? Number(process.env['COLUMNS'] ?? COLUMNS)
    const lines = waterfall(read, {
      columns: Number.isFinite(columns) && columns > 0 ? columns : COLUMNS,
      now: Date.now(),
      nameOf: (device) => names.get(device) ?? device.slice(0, SHORT),
    })
    print(values.json, { sid, ...read }, lines.join('\n'))
    return 0
  })
}
