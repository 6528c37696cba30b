import { useState, type ReactElement } from 'react'
import { Icon } from './icons.tsx'

/** Copies text; also where the clipboard API is missing, e.g. over plain HTTP in the LAN. Resolves with success. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = document.createElement('textarea')
    area.value = text
    area.style.position = 'fixed'
    area.style.opacity = '0'
    document.body.append(area)
    area.select()
    const copied = document.execCommand('copy')
    area.remove()
    return copied
  }
}

/** `what`: said of it where it does not stand at the text itself. */
export function CopyButton({ text, what }: { text: string; what?: string }): ReactElement {
  const [copied, setCopied] = useState(false)
  return (
    <button
      type="button"
      className="icon-button copy"
      aria-label={copied ? 'Copied' : ['Copy', what].filter(Boolean).join(' ')}
      onClick={() => void copyText(text).then(setCopied)}
      onBlur={() => setCopied(false)}
    >
      <Icon name={copied ? 'check' : 'copy'} size={18} />
    </button>
  )
}

/** One selectable block that scrolls in itself. `wrap`: long lines break instead. `caption`: stands above it. */
export function Code({
  text,
  label,
  caption,
  wrap = false,
}: {
  text: string
  label: string
  caption?: string | undefined
  wrap?: boolean
}): ReactElement {
  return (
    <figure className="code">
      {caption && <figcaption className="mono">{caption}</figcaption>}
      <pre className={wrap ? 'wrap' : ''} tabIndex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} />
    </figure>
  )
}
