/**
 * A command of the CLI in the test's own process, for the steps on a test's way: everything from its arguments to what it prints, but
 * not the start of Node, which takes longest. How a process ends and says its errors is shown by `ground.baton`.
 */
import { commandIn } from '@baton/runner/cli/table.ts'

/**
 * Gives what the command printed. One at a time.
 *
 * @throws BatonError as the command does
 */
export async function command(...words: string[]): Promise<string> {
  const found = commandIn(words)
  if (!found) throw new Error(`there is no command ${words.join(' ')}`)
  const run = await found.command.load()
  const { stdout } = process
  const write = stdout.write.bind(stdout)
  let printed = ''
  stdout.write = (text: string | Uint8Array): boolean => {
    printed += String(text)
    return true
  }
  try {
    const code = await run(found.args)
    if (code !== 0) throw new Error(`baton ${words.join(' ')} ended with ${code}: ${printed}`)
    return printed
  } finally {
    stdout.write = write
  }
}
