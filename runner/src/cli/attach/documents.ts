/** The documents of a session, for reading. */
import type { DocumentState } from '@baton/shared/guest.ts'
import { clean, wrap, type Line } from '../term/text.ts'

export function documentLines(documents: ReadonlyMap<string, DocumentState>, width: number): Line[] {
  if (documents.size === 0) return [[{ text: 'This session has no documents.', as: 'dim' }]]
  return [...documents.values()].flatMap(({ name, version, value }, i) => [
    ...(i > 0 ? [[] as Line] : []),
    [
      { text: clean(name), as: 'bold' },
      { text: `  version ${version}`, as: 'dim' },
    ],
    ...clean(JSON.stringify(value, null, 2))
      .split('\n')
      .flatMap((line) => wrap([{ text: line }], width, [], [{ text: '    ' }], true)),
  ])
}
