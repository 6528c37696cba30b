/** `baton attach`: a session in the terminal, live, as on the phone; on a screen, or in lines. */
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import type { Ending } from './attach/host.ts'
import { coloursOf } from './term/style.ts'

interface Attached {
  readonly ended: Promise<Ending>
  end: (ending: Ending) => void
  close: () => Promise<void>
  suspend?: () => void
  resume?: () => void
}

export async function attach(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('attach', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const listed = await view.list()
    const isTerminal = process.stdin.isTTY && process.stdout.isTTY
    const colours = coloursOf(process.env, isTerminal)
    const isPlain = values.plain === true || values.json === true || colours === 'none'
    const attached = isPlain ? await plain() : await screen()
    async function plain(): Promise<Attached> {
      const { PlainAttach } = await import('./attach/plain.ts')
      return new PlainAttach(view, sid, listed, values.json === true)
    }
    async function screen(): Promise<Attached> {
      const [{ AttachApp }, { Drafts }] = await Promise.all([
        import('./attach/app.ts'),
        import('./attach/drafts.ts'),
      ])
      return new AttachApp(view, sid, listed, new Drafts(view.folder), colours)
    }
    return run(attached)
  })
}

/** Until the person leaves or something ends it; the terminal is given back first, whatever it was. */
async function run(attached: Attached): Promise<number> {
  const ends: Record<'SIGTERM' | 'SIGHUP' | 'SIGINT', number> = { SIGTERM: 143, SIGHUP: 129, SIGINT: 130 }
  const listeners = Object.entries(ends).map(([signal, code]) => {
    const listener = (): void => attached.end({ code })
    process.once(signal, listener)
    return () => process.off(signal, listener)
  })
  const onStop = (): void => {
    attached.suspend?.()
    // Without the listener the signal does what it does.
    process.off('SIGTSTP', onStop)
    process.kill(process.pid, 'SIGTSTP')
  }
  const onContinue = (): void => {
    process.on('SIGTSTP', onStop)
    attached.resume?.()
  }
  process.on('SIGTSTP', onStop)
  process.on('SIGCONT', onContinue)
  // Whoever reads has gone, or the terminal has.
  process.stdout.once('error', () => attached.end({ code: 0 }))
  const onCrash = (error: unknown): void => {
    attached.suspend?.()
    process.stderr.write(
      `baton: ${error instanceof Error ? error.message : String(error)} Report it as a bug.\n`,
    )
    process.exit(1)
  }
  process.on('uncaughtException', onCrash)
  process.on('unhandledRejection', onCrash)
  try {
    const { code, error } = await attached.ended
    await attached.close()
    if (error) throw error
    return code
  } finally {
    for (const off of listeners) off()
    process.off('SIGTSTP', onStop)
    process.off('SIGCONT', onContinue)
    process.off('uncaughtException', onCrash)
    process.off('unhandledRejection', onCrash)
  }
}
