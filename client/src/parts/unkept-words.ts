import { explain } from '@baton/shared/errors.ts'

/** What happened and what to do when IndexedDB refuses: it is full, or was closed under the page. */
export function unkeptWords(error: unknown, what = 'Not kept'): string {
  return `${what}: this browser could not store it. Free some space or reload the page, then try again. (${explain(error)})`
}
