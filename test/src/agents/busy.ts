/** An agent that computes without end and never yields: it can only be stopped from outside. */
export default function main(): void {
  let n = 1
  for (;;) n = (n * 31 + 7) % 1_000_003
}
