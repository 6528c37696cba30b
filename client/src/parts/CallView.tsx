import { useMemo, type ReactElement } from 'react'
import type { Json } from '@baton/shared/guest.ts'
import { callBody, revealed } from '@baton/shared/view/call.ts'
import { Code } from './Code.tsx'
import { Diff } from './Diff.tsx'
import { Plan } from './Plan.tsx'

/** A call whole: its command, its change, or its fields. Never cut. */
export function CallView({ name, input }: { name: string; input: { [key: string]: Json } }): ReactElement {
  const body = useMemo(() => callBody(name, input), [name, input])
  if (body.as === 'fields') return <Code text={revealed(body.text)} label={`Input of ${name}`} wrap />
  if (body.as === 'plan') return <Plan text={revealed(body.plan)} />
  return (
    <>
      {body.as === 'command' ? (
        <Code text={revealed(body.command)} label={name === 'fetch' ? 'Address' : 'Command'} wrap />
      ) : (
        <Diff path={revealed(body.path)} before={revealed(body.before)} after={revealed(body.after)} />
      )}
      {body.rest.map((line) => (
        <p key={line} className="small quiet mono rest">
          {revealed(line)}
        </p>
      ))}
    </>
  )
}
