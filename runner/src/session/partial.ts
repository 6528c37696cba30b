/**
 * Sends the partial text of a model's answer to whoever watches: the whole text each time, so that a lost one costs nothing;
 * the longer it is, the more seldom. Ends with the outcome.
 */
import { LIMITS } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import type { RelayLink } from './link.ts'

const SOONEST_MS = 50
/** One more millisecond of rest for so many characters: about 1 MB/s at most. */
const CHARS_PER_MS = 1000
/** Base64 and sealing add a third; what is longer waits for its outcome. */
const TEXT_MAX = LIMITS.delta_bytes / 8

export class Partial {
  readonly #send: (text: string) => void
  #text = ''
  #timer: ReturnType<typeof setTimeout> | undefined
  #sent_at = 0

  constructor(link: RelayLink, lease: { sid: string; key: Uint8Array; epoch: number }, effect: number) {
    const { sid, key, epoch } = lease
    this.#send = (text) => {
      const body = sealJson(key, { text }, place.delta(sid, effect))
      link.tell({ t: 'delta', sid, epoch, effect, body })
    }
  }

  update(text: string): void {
    this.#text = text
    if (this.#timer || text.length > TEXT_MAX) return
    const rest_ms = SOONEST_MS + text.length / CHARS_PER_MS
    const wait_ms = Math.max(0, this.#sent_at + rest_ms - Date.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sent_at = Date.now()
      this.#send(this.#text)
    }, wait_ms)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
