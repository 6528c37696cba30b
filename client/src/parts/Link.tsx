import type { AnchorHTMLAttributes, ReactElement } from 'react'
import { navigate } from '../router.ts'

/** A link inside the app; opening it in a new tab stays possible. */
export function Link({
  to,
  ...rest
}: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>): ReactElement {
  return (
    <a
      href={to}
      {...rest}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return
        event.preventDefault()
        navigate(to)
      }}
    />
  )
}
