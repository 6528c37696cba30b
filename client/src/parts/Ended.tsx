import { useEffect, useState, type ReactElement } from 'react'
import { navigate } from '../router.ts'
import type { LastUsed } from '../store/db.ts'
import { NEW_SESSION } from '../store/drafts.ts'
import type { Photo } from '../store/photos.ts'
import { usePaired } from './hooks.ts'
import { unkeptWords } from './unkept-words.ts'

/**
 * Stands in the composer's place when a session takes no more prompts. A draft that was there stays, and goes into the new
 * session's draft with the button.
 */
export function Ended({
  draft,
  like,
  said,
}: {
  draft: string
  like: LastUsed | undefined
  /** The session's first prompt, which another one like it begins with. */
  said: string | undefined
}): ReactElement {
  const { db, drafts } = usePaired()
  const [text, setText] = useState('')
  const [photos, setPhotos] = useState<readonly Photo[]>([])
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let current = true
    void drafts.load(draft).then((saved) => {
      if (current) setText(saved)
    })
    void drafts.photos(draft).then((saved) => {
      if (current) setPhotos(saved)
    })
    return () => {
      current = false
    }
  }, [draft, drafts])
  const has_draft = text.trim() !== '' || photos.length > 0

  async function begin(): Promise<void> {
    setProblem('')
    try {
      if (like) await db.put('last', like, 'new-session')
      if (!has_draft && said !== undefined && (await drafts.load(NEW_SESSION)) !== said)
        drafts.save(draft, said)
      await drafts.move(draft, NEW_SESSION)
      navigate('/')
    } catch (error) {
      setProblem(unkeptWords(error))
    }
  }

  return (
    <section className="ended" aria-label="Ended">
      {problem && (
        <p className="small problem" role="alert">
          {problem}
        </p>
      )}
      {has_draft && (
        <div>
          <p className="small quiet">Your draft, not sent:</p>
          {text.trim() !== '' && <p className="ended-draft">{text}</p>}
          {photos.length > 0 && (
            <p className="small">{photos.length === 1 ? '1 photo' : `${photos.length} photos`}</p>
          )}
        </div>
      )}
      <div className="ended-foot">
        <p className="small quiet">This session has ended.</p>
        <button type="button" className="button" onClick={() => void begin()}>
          {has_draft ? 'New session with this draft' : 'New session like this'}
        </button>
      </div>
    </section>
  )
}
