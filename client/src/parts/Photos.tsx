import type { ImageRef } from '@baton/shared/guest.ts'
import { useContext, useEffect, useState, type ReactElement } from 'react'
import type { Photo } from '../store/photos.ts'
import { SidContext } from './sid.ts'
import { usePaired } from './hooks.ts'
import { Icon } from './icons.tsx'

/** A picture whose bytes are here. */
export function Picture({ photo, name }: { photo: Photo; name: string }): ReactElement {
  const [url, setUrl] = useState('')
  useEffect(() => {
    const made = URL.createObjectURL(
      new Blob([photo.bytes as Uint8Array<ArrayBuffer>], { type: photo.media_type }),
    )
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [photo])
  return url === '' ? <span className="picture" /> : <img className="picture" src={url} alt={name} />
}

/** Pictures that go with the draft, each to be taken off again. */
export function DraftPhotos({
  photos,
  onRemove,
}: {
  photos: readonly Photo[]
  onRemove: (index: number) => void
}): ReactElement | null {
  if (photos.length === 0) return null
  return (
    <ul role="list" className="draft-photos" aria-label="Photos">
      {photos.map((photo, i) => (
        <li key={i}>
          <Picture photo={photo} name={`Photo ${i + 1}`} />
          <button
            type="button"
            className="icon-button"
            aria-label={`Remove photo ${i + 1}`}
            onClick={() => onRemove(i)}
          >
            <span>
              <Icon name="cross" size={16} />
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Pictures of a transcript: blobs of the session, fetched when they come near the screen. */
export function SentPhotos({
  images,
  name = 'Photo',
}: {
  images: readonly ImageRef[]
  name?: string
}): ReactElement {
  return (
    <div className="sent-photos">
      {images.map((image, i) => (
        <SentPhoto key={image.blob} image={image} name={images.length === 1 ? name : `${name} ${i + 1}`} />
      ))}
    </div>
  )
}

function SentPhoto({ image, name }: { image: ImageRef; name: string }): ReactElement {
  const { hub } = usePaired()
  const sid = useContext(SidContext)
  const [photo, setPhoto] = useState<Photo | undefined>()
  const [failed, setFailed] = useState(false)
  const [tries, setTries] = useState(0)
  const [large, setLarge] = useState(false)
  const { blob, media_type } = image
  useEffect(() => {
    let current = true
    setFailed(false)
    hub.picture(sid, blob).then(
      (bytes) => current && setPhoto({ media_type, bytes }),
      () => current && setFailed(true),
    )
    return () => {
      current = false
    }
  }, [hub, sid, blob, media_type, tries])
  if (failed) {
    return (
      <button type="button" className="button bare" onClick={() => setTries(tries + 1)}>
        {name} could not be loaded. Try again
      </button>
    )
  }
  if (!photo) return <span className="picture" role="img" aria-label={`${name}, loading`} />
  return (
    <button
      type="button"
      className={large ? 'picture-button large' : 'picture-button'}
      aria-expanded={large}
      onClick={() => setLarge(!large)}
    >
      <Picture photo={photo} name={name} />
    </button>
  )
}
