/** A passphrase: from the environment for programs, else typed in the terminal without being shown. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { BatonError } from '@baton/shared/errors.ts'

const CHARS_MIN = 8

/** `new`: is typed twice and must not be short. Throws BatonError `usage` when there is none. */
export async function askPassphrase(which: 'new' | 'known'): Promise<string> {
  const given = process.env['BATON_PASSPHRASE']
  if (given === undefined && !process.stdin.isTTY) {
    throw new BatonError('usage', 'There is no terminal to ask for the passphrase; set BATON_PASSPHRASE.')
  }
  const passphrase = given ?? (await typed('Passphrase: '))
  if (which === 'known') return passphrase
  if (passphrase.length < CHARS_MIN) {
    throw new BatonError('usage', `The passphrase needs at least ${CHARS_MIN} characters.`)
  }
  if (given === undefined && (await typed('Again: ')) !== passphrase) {
    throw new BatonError('usage', 'The two are not the same.')
  }
  return passphrase
}

function typed(question: string): Promise<string> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: silent, terminal: true })
  return new Promise((resolve, reject) => {
    lines.once('SIGINT', () => {
      lines.close()
      reject(new BatonError('usage', 'No passphrase was given.'))
    })
    lines.question('', (answer) => {
      lines.close()
      process.stderr.write('\n')
      resolve(answer)
    })
  })
}
