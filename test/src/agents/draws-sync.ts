import { emit, prompt } from 'baton'

/** Draws a random number for every prompt, and blocks in between. */
export default function main(): void {
  for (;;) {
    prompt.sync()
    emit('drawn', Math.random())
  }
}
