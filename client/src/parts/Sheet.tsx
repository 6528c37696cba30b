import { useEffect, useRef, type ReactElement, type ReactNode } from 'react'

/** A sheet from the bottom, where the thumb is: a modal dialog, so that focus and Escape are the browser's work. */
export function Sheet({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ReactNode
}): ReactElement {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={ref}
      className="sheet"
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        // The dialog itself is only hit beside its content: on the shade.
        if (event.target === ref.current) onClose()
      }}
    >
      <div className="sheet-content">
        <h2>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}
