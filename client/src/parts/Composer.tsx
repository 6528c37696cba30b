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
import type { Said } from '../net/commands.ts'
import { DELIVERIES, type Delivery } from '../store/delivery.ts'
import { joined } from '../store/drafts.ts'
import { PHOTOS_MAX, type Photo } from '../store/photos.ts'
import { Icon } from './icons.tsx'
import { useMedia, usePaired, useRemoved } from './hooks.ts'
import { DraftPhotos } from './Photos.tsx'
import { unkeptWords } from './unkept-words.ts'

/**
 * The text a person types: kept as a draft on every keystroke (F15), given away only when `onSend` has made it durable.
 * Enter breaks the line on a touch keyboard and sends elsewhere; Ctrl or Cmd with Enter sends everywhere; an input method
 * that composes is left alone (F63).
 */
export function Composer({
  draft,
  placeholder,
  starts = false,
  busy = false,
  stopping = false,
  disabled: unable = false,
  children,
  onSend,
  onStop,
  inserted,
}: {
  /** Name of the draft. */
  draft: string
  placeholder: string
  /** What is sent begins a session. */
  starts?: boolean
  /** The agent works: it can be stopped, whatever is typed, and a prompt queues or steers. */
  busy?: boolean
  /** Stop was told and has not been heard. */
  stopping?: boolean
  disabled?: boolean
  /** What stands below the text, beside the button. */
  children?: ReactNode
  onSend: (said: Said) => Promise<void>
  onStop?: () => void
  /** What to put back in front of the draft, e.g. of a discarded prompt; each object once. */
  inserted?: { text: string; photos?: readonly Photo[] } | undefined
}): ReactElement {
  const { drafts } = usePaired()
  const [text, setText] = useState('')
  const [problem, setProblem] = useState('')
  const [photos, setPhotos] = useState<readonly Photo[]>([])
  /** The same, for what ends later than the picture in which it began. */
  const held = useRef<readonly Photo[]>([])
  const [reading, setReading] = useState(0)
  /** For the next prompt only: steering is never what one forgot to switch off. */
  const [how, setHow] = useState<Delivery>('queue')
  /** The text took a second line beside the buttons, and has a line of its own until it is gone. */
  const [long, setLong] = useState(false)
  const touched = useRef(false)
  const files = useRef<HTMLInputElement>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  const touch = useMedia('(pointer: coarse)')
  const empty = text.trim() === '' && photos.length === 0
  const removed = useRemoved()
  const disabled = unable || removed !== undefined
  const choosing = busy && !empty
  const layout = children ? '' : choosing || (long && text !== '') ? 'talk' : 'inline'

  useEffect(() => {
    let current = true
    touched.current = false
    setText('')
    held.current = []
    setPhotos([])
    void drafts.load(draft).then((saved) => {
      if (current && !touched.current) setText(saved)
    })
    void drafts.photos(draft).then((saved) => {
      if (!current || saved.length === 0) return
      held.current = [...saved, ...held.current]
      setPhotos(held.current)
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

  function keepPhotos(next: readonly Photo[]): void {
    held.current = next
    setPhotos(next)
    drafts.savePhotos(draft, next).catch((error: unknown) => setProblem(unkeptWords(error, 'Photo not kept')))
  }

  async function attach(list: FileList | null): Promise<void> {
    const chosen = [...(list ?? [])]
    if (files.current) files.current.value = ''
    if (chosen.length === 0) return
    setProblem('')
    setReading((count) => count + chosen.length)
    const room = PHOTOS_MAX - photos.length
    const refused = chosen.length > room ? [`A prompt carries at most ${PHOTOS_MAX} photos.`] : []
    const read: Photo[] = []
    try {
      const { preparePhotos } = await import('./prepare-photo.ts')
      const prepared = await preparePhotos(chosen.slice(0, room))
      read.push(...prepared.read)
      refused.push(...prepared.refused)
    } catch {
      refused.push('The part that reads photos could not be loaded. Try again when the connection is back.')
    }
    setReading((count) => count - chosen.length)
    if (refused.length > 0) setProblem(refused.join(' '))
    if (read.length > 0) keepPhotos([...held.current, ...read])
  }

  useEffect(() => {
    if (!inserted) return
    touched.current = true
    const back = inserted.photos ?? []
    if (back.length > 0) {
      held.current = [...back, ...held.current]
      setPhotos(held.current)
      drafts.savePhotos(draft, held.current).catch(() => undefined)
    }
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
    const { lineHeight } = getComputedStyle(element)
    setLong((before) => text !== '' && (before || element.clientHeight > 2.5 * Number.parseFloat(lineHeight)))
  }, [text, placeholder, layout])

  async function submit(event?: FormEvent): Promise<void> {
    event?.preventDefault()
    if (empty || disabled || reading > 0) return
    const sent = text
    const steer = busy && how === 'steer'
    drafts.forget(draft)
    setText('')
    held.current = []
    setPhotos([])
    setProblem('')
    setHow('queue')
    try {
      await onSend({
        text: sent.trim(),
        ...(photos.length > 0 && { photos }),
        ...(steer && { steer }),
      })
    } catch (error) {
      setProblem(unkeptWords(error))
      change(sent)
      if (steer) setHow('steer')
      held.current = photos
      setPhotos(photos)
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing || event.keyCode === COMPOSING) return
    if (event.metaKey || event.ctrlKey || (!touch && !event.shiftKey && !event.altKey)) {
      event.preventDefault()
      void submit()
    }
  }

  return (
    <form className={`composer ${layout}`} onSubmit={(event) => void submit(event)}>
      {problem && (
        <p className="small problem" role="alert">
          {problem}
        </p>
      )}
      {removed !== undefined && <p className="small problem">{removed}</p>}
      <DraftPhotos photos={photos} onRemove={(index) => keepPhotos(photos.filter((_, i) => i !== index))} />
      {reading > 0 && (
        <p className="small quiet" role="status">
          Reading {reading === 1 ? 'the photo' : `${reading} photos`}…
        </p>
      )}
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
      {choosing && (
        <p className="small quiet means">{DELIVERIES.find((one) => one.delivery === how)?.means}</p>
      )}
      <div className="composer-foot">
        <div className="composer-side">
          {choosing ? <DeliveryChoice how={how} onChoose={setHow} /> : children}
        </div>
        <button
          type="button"
          className="icon-button attach"
          aria-label="Attach photos"
          disabled={disabled}
          onMouseDown={keepFocus}
          onClick={() => files.current?.click()}
        >
          <Icon name="image" size={22} />
        </button>
        <input
          ref={files}
          type="file"
          accept="image/*"
          multiple
          hidden
          aria-label="Photos to attach"
          onChange={(event) => void attach(event.target.files)}
        />
        {busy && (
          <button
            type="button"
            className={empty ? 'button stop' : 'icon-button stop'}
            aria-label={stopping ? 'Stopping…' : 'Stop'}
            onMouseDown={keepFocus}
            onClick={onStop}
            disabled={stopping || removed !== undefined}
          >
            <Icon name="stop" size={empty ? 20 : 24} />
            {empty && (stopping ? 'Stopping…' : 'Stop')}
          </button>
        )}
        {!(busy && empty) && (
          <button
            type="submit"
            className="button primary"
            aria-label={starts ? 'Start new session' : choosing ? nameOf(how) : 'Send'}
            onMouseDown={keepFocus}
            disabled={empty || disabled || reading > 0}
          >
            {/* How it goes stands in the choice beside it. */}
            {!choosing && (starts ? 'Start' : 'Send')}
            <Icon name="up" size={choosing ? 22 : 18} />
          </button>
        )}
      </div>
    </form>
  )
}

function nameOf(how: Delivery): string | undefined {
  return DELIVERIES.find((one) => one.delivery === how)?.name
}

/** Whether a prompt waits for the end of the turn or joins it. */
function DeliveryChoice({
  how,
  onChoose,
}: {
  how: Delivery
  onChoose: (how: Delivery) => void
}): ReactElement {
  return (
    <fieldset className="delivery">
      <legend className="only-read">While the agent works</legend>
      <div className="segments">
        {DELIVERIES.map(({ delivery, name }) => (
          <label key={delivery}>
            <input
              type="radio"
              name="delivery"
              checked={delivery === how}
              onChange={() => onChoose(delivery)}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** The key code of a keystroke that an input method takes; Safari ends the composition before it reports the key. */
const COMPOSING = 229

/** Pressing the button leaves the keyboard open and the page where it is. */
function keepFocus(event: MouseEvent): void {
  event.preventDefault()
}
