/** Standard output and standard error of commands: whoever reads them may go at any time (`baton log | head`). */

/**
 * Nobody is left to read: the command ends with 0, quietly, unless it works on without (`keepsOn`: a server goes on). Output that can't
 * be written for another reason, a full disk say, is told, and ends the command with 1. What can't be said on standard error is not said.
 */
export function mindReaders(keepsOn: boolean): void {
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (keepsOn) return
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`baton: The output can not be written (${error.code ?? error.message}).\n`)
    process.exit(1)
  })
}
