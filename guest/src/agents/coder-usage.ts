/** What the model's answers have used and cost, in a turn and in the whole session. */
import type { Json, LlmResult } from 'baton'

export class Usage {
  readonly #sum = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }
  #requests = 0
  #cost_usd = 0
  /** Answers of models whose price is not known. */
  #unpriced = 0

  add({ usage, cost_usd }: LlmResult): void {
    for (const name of Object.keys(this.#sum) as (keyof LlmResult['usage'])[]) this.#sum[name] += usage[name]
    this.#requests++
    if (cost_usd === undefined) this.#unpriced++
    else this.#cost_usd += cost_usd
  }

  /** `cost_usd` is there when every answer has a known price. */
  report(): { [key: string]: Json } {
    return {
      usage: { ...this.#sum, requests: this.#requests },
      ...(this.#unpriced === 0 ? { cost_usd: this.#cost_usd } : { unpriced: this.#unpriced }),
    }
  }
}
