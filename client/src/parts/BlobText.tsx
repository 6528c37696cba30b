import { explain } from '@baton/shared/errors.ts'
import { fromUtf8 } from '@baton/shared/bytes.ts'
import type { Json } from '@baton/shared/guest.ts'
import { useContext, useState, type ReactElement, type ReactNode } from 'react'
import type { BlobRef } from '@baton/shared/view/items.ts'
import { size } from '@baton/shared/view/units.ts'
import { usePaired } from './hooks.ts'
import { SidContext } from './sid.ts'

/** A result too long for the journal: its start and end, and the whole on demand. */
export function BlobText({
  blob,
  read,
  children,
}: {
  blob: BlobRef
  read: (json: Json) => string
  children: (text: string) => ReactNode
}): ReactElement {
  const { hub } = usePaired()
  const sid = useContext(SidContext)
  const [state, setState] = useState<{ text?: string; problem?: string; loading?: boolean }>({})
  async function load(): Promise<void> {
    setState({ loading: true })
    try {
      const bytes = await hub.blobs.get(sid, hub.keyOf(sid), blob.hash)
      setState({ text: read(JSON.parse(fromUtf8(bytes)) as Json) })
    } catch (error) {
      setState({ problem: explain(error) })
    }
  }
  if (state.text !== undefined) return <>{children(state.text)}</>
  return (
    <>
      {children([blob.head, blob.tail].filter(Boolean).join('\n…\n'))}
      {state.problem && <p className="small problem">{state.problem}</p>}
      <button type="button" className="button bare" disabled={state.loading} onClick={() => void load()}>
        {state.loading ? 'Loading…' : `Load all of it (${size(blob.bytes)})`}
      </button>
    </>
  )
}
