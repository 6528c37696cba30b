import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type FormEvent,
  type KeyboardEvent,
  type MouseEvent,
  type ReactElement,
  type ReactNode,
} from 'react'
import { joined } from '../store/drafts.ts'
import { Icon } from './icons.tsx'
import { useMedia, usePaired, useRemoved } from './hooks.ts'
import { unkeptWords } from './Unkept.tsx'

/** What the button beside the text does. */
export type Action =
  { do: 'send'; label: 'Send' | 'Queue' | 'New session' } | { do: 'stop'; stopping: boolean }

/**
 * The text a person types: kept as a draft on every keystroke (F15), given away only when `onSend` has made it durable.
 * Enter breaks the line on a touch keyboard and sends elsewhere; Ctrl or Cmd with Enter sends everywhere; an input method
 * that composes is left alone (F63).
 */
export function Composer({
  draft,
  placeholder,
  action,
  disabled: unable = false,
  children,
  onSend,
  onStop,
  inserted,
}: {
  /** Name of the draft. */
  draft: string
  placeholder: string
  action: (empty: boolean) => Action
  disabled?: boolean
  /** What stands below the text, beside the button. */
  children?: ReactNode
  onSend: (text: string) => Promise<void>
  onStop?: () => void
  /** Text to put back in front of the draft, e.g. of a discarded prompt; each object once. */
  inserted?: { text: string } | undefined
}): ReactElement {
  const { drafts } = usePaired()
  const [text, setText] = useState('')
  const [problem, setProblem] = useState('')
  const touched = useRef(false)
  const area = useRef<HTMLTextAreaElement>(null)
  const touch = useMedia('(pointer: coarse)')
  const empty = text.trim() === ''
  const next = action(empty)
  const removed = useRemoved()
  const disabled = unable || removed !== undefined

  useEffect(() => {
    let current = true
    touched.current = false
    setText('')
    void drafts.load(draft).then((saved) => {
      if (current && !touched.current) setText(saved)
    })
    return () => {
      current = false
    }
  }, [draft, drafts])

  function change(value: string): void {
    touched.current = true
    setText(value)
    drafts.save(draft, value)
  }

  useEffect(() => {
    if (!inserted) return
    touched.current = true
    setText((before) => {
      const text = joined(inserted.text, before)
      drafts.save(draft, text)
      return text
    })
    area.current?.focus()
  }, [inserted, draft, drafts])

  useLayoutEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${element.scrollHeight}px`
  }, [text])

  async function submit(event?: FormEvent): Promise<void> {
    event?.preventDefault()
    if (next.do === 'stop') {
      if (removed !== undefined) return
      onStop?.()
      return
    }
    if (empty || disabled) return
    const sent = text
    drafts.forget(draft)
    setText('')
    setProblem('')
    try {
      await onSend(sent.trim())
    } catch (error) {
      setProblem(unkeptWords(error))
      change(sent)
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing || event.keyCode === COMPOSING) return
    if (event.metaKey || event.ctrlKey || (!touch && !event.shiftKey && !event.altKey)) {
      event.preventDefault()
      if (next.do === 'send') void submit()
    }
  }

  return (
    <form className={children ? 'composer' : 'composer inline'} onSubmit={(event) => void submit(event)}>
      {problem && (
        <p className="small problem" role="alert">
          {problem}
        </p>
      )}
      {removed !== undefined && <p className="small problem">{removed}</p>}
      <textarea
        ref={area}
        rows={1}
        aria-label="Message"
        placeholder={placeholder}
        value={text}
        autoCapitalize="sentences"
        enterKeyHint={touch ? 'enter' : 'send'}
        onChange={(event) => change(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="composer-foot">
        <div className="composer-side">{children}</div>
        {next.do === 'stop' ? (
          <button
            type="submit"
            className="button stop"
            onMouseDown={keepFocus}
            disabled={next.stopping || removed !== undefined}
          >
            <Icon name="stop" size={20} />
            {next.stopping ? 'Stopping…' : 'Stop'}
          </button>
        ) : (
          <button
            type="submit"
            className="button primary"
            {...(next.label === 'New session' ? { 'aria-label': 'Start new session' } : {})}
            onMouseDown={keepFocus}
            disabled={empty || disabled}
          >
            {next.label === 'New session' ? 'Start' : next.label}
            <Icon name="up" size={18} />
          </button>
        )}
      </div>
    </form>
  )
}

/** The key code of a keystroke that an input method takes; Safari ends the composition before it reports the key. */
const COMPOSING = 229

/** Pressing the button leaves the keyboard open and the page where it is. */
function keepFocus(event: MouseEvent): void {
  event.preventDefault()
}
