import { emit, prompt, sleep } from 'baton'

/** Draws a random number, computes for seconds, then draws another one. */
export default async function main(): Promise<void> {
  await prompt()
  emit('drawn', Math.random())
  await sleep(1)
  let sum = 0
  for (let i = 0; i < 12_000_000; i++) sum = (sum + i) % 1_000_003
  emit('sum', sum)
  emit('drawn', Math.random())
  await prompt()
}
