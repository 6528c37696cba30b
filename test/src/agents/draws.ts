import { emit, prompt } from 'baton'

/** Draws a random number for every prompt. */
export default async function main(): Promise<void> {
  for (;;) {
    await prompt()
    emit('drawn', Math.random())
  }
}
