import { useEffect, useRef, type ReactElement, type ReactNode } from 'react'

/** A sheet from the bottom, where the thumb is: a modal dialog, so that focus and Escape are the browser's work. */
export function Sheet({
  title,
  full = false,
  onClose,
  children,
}: {
  title: string
  /** It takes the whole screen. */
  full?: boolean
  onClose: () => void
  children: ReactNode
}): ReactElement {
  const ref = useRef<HTMLDialogElement>(null)
  const title_line = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    // Not its first field: that would bring the keyboard up before anybody wants to type.
    title_line.current?.focus()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      className={full ? 'sheet full' : 'sheet'}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        // The dialog itself is only hit beside its content: on the shade.
        if (event.target === ref.current) onClose()
      }}
    >
      <div className="sheet-content">
        <h2 ref={title_line} tabIndex={-1}>
          {title}
        </h2>
        {children}
      </div>
    </dialog>
  )
}
