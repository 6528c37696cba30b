/**
 * Sends what comes out of a running effect to whoever watches: the partial text of a model's answer, whole each time, so that a lost one
 * costs nothing, and the newest of what it thinks; the newest output of a tool. The longer it is, the more seldom. Ends with the outcome.
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
  readonly #send: (text: string, thought: string) => void
  #text = ''
  #thought = ''
  #timer: ReturnType<typeof setTimeout> | undefined
  #sent_at = 0

  constructor(link: RelayLink, lease: { sid: string; key: Uint8Array; epoch: number }, effect: number) {
    const { sid, key, epoch } = lease
    this.#send = (text, thought) => {
      const said = thought === '' ? { text } : { text, thought }
      const body = sealJson(key, said, place.delta(sid, effect))
      link.tell({ t: 'delta', sid, epoch, effect, body })
    }
  }

  update(text: string, thought = ''): void {
    this.#text = text
    this.#thought = thought
    if (this.#timer || text.length > TEXT_MAX) return
    const rest_ms = SOONEST_MS + text.length / CHARS_PER_MS
    const wait_ms = Math.max(0, this.#sent_at + rest_ms - Date.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#sent_at = Date.now()
      this.#send(this.#text, this.#thought)
    }, wait_ms)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}

/** What a screen shows of a command's output. */
const NEWEST_CHARS = 4_000

/** The newest output of a tool. */
export class NewestOutput {
  readonly #update: (text: string) => void
  #text = ''

  constructor(update: (text: string) => void) {
    this.#update = update
  }

  add(text: string): void {
    this.#text = (this.#text + text.slice(-NEWEST_CHARS)).slice(-NEWEST_CHARS).toWellFormed()
    this.#update(this.#text)
  }
}
