/** `baton relay`: the relay is a program of its own; this runs it. What it is told it reads itself (relay/src/flags.ts). */
import { parseFor } from './args.ts'
import { print } from './output.ts'
import { child, message, RELAY } from './children.ts'

export async function relay(args: string[]): Promise<number> {
  const { values } = parseFor('relay', args)
  const running = child(RELAY, args)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => running.kill('SIGTERM'))
  message(running, 'listening').then(
    ({ port }) => {
      const origin = `http://127.0.0.1:${String(port)}`
      print(values.json, { origin }, `relay listening on ${origin}`)
    },
    () => undefined,
  )
  return new Promise((resolve) => running.once('exit', (code) => resolve(code ?? 1)))
}
