/** `baton relay`: the relay is a program of its own; this runs it. What it is told it reads itself (relay/src/flags.ts). */
import { parseFor } from './args.ts'
import { child, message, RELAY } from './children.ts'

export async function relay(args: string[]): Promise<number> {
  parseFor('relay', args)
  const running = child(RELAY, args)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(signal, () => running.kill('SIGTERM'))
  message(running, 'listening').then(
    ({ port }) => process.stdout.write(`relay listening on http://127.0.0.1:${String(port)}\n`),
    () => undefined,
  )
  return new Promise((resolve) => running.once('exit', (code) => resolve(code ?? 1)))
}
