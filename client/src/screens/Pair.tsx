import { useState, type ReactElement } from 'react'
import { arrive, keep, pair, type Entrance } from '../entrance.ts'
import { Mark } from '../parts/icons.tsx'

/** Everything before there is an account on this device. */
export function Pair({ state }: { state: Exclude<Entrance, { at: 'paired' }> }): ReactElement {
  return (
    <main className="pair">
      <div className="pair-mark">
        <Mark size={88} />
        <h1>Baton</h1>
      </div>
      <PairBody state={state} />
    </main>
  )
}

function PairBody({ state }: { state: Exclude<Entrance, { at: 'paired' }> }): ReactElement | null {
  switch (state.at) {
    case 'opening':
      return null
    case 'pairing':
      return <p role="status">Joining your account…</p>
    case 'broken':
      return (
        <div className="pair-body" role="alert">
          <p>This browser does not let Baton keep anything, so it can’t be paired here.</p>
          <p className="quiet">Leave the private window or allow storage for this site, then reload.</p>
          <p className="small quiet">{state.message}</p>
        </div>
      )
    case 'asking':
      return <Asking state={state} />
    case 'unpaired':
      return <Unpaired problem={state.problem} />
  }
}

function Asking({ state }: { state: Extract<Entrance, { at: 'asking' }> }): ReactElement {
  return (
    <div className="pair-body">
      {state.problem ? (
        <p className="problem" role="alert">
          {state.problem}
        </p>
      ) : (
        <p>This device is paired already. Joining with the new link replaces the account that is here.</p>
      )}
      {state.unsent > 0 && !state.problem && (
        <p className="problem">
          {state.unsent === 1 ? 'One message was' : `${state.unsent} messages were`} not sent yet and would be
          lost.
        </p>
      )}
      <div className="pair-actions">
        <button type="button" className="button primary" onClick={() => void keep()}>
          Keep my account
        </button>
        {!state.problem && (
          <button type="button" className="button" onClick={() => void pair(state.link)}>
            Join with the new link
          </button>
        )}
      </div>
    </div>
  )
}

function Unpaired({ problem }: { problem: string | undefined }): ReactElement {
  const [link, setLink] = useState('')
  return (
    <div className="pair-body">
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <p>Prompt from your pocket; the agent works on your machines.</p>
      <ol className="steps">
        <li>
          On your computer, run <code>npm start</code>; if Baton runs there already, <code>baton pair</code>.
        </li>
        <li>Scan the QR code with this phone’s camera, or open the link here.</li>
      </ol>
      <form
        className="pair-form"
        onSubmit={(event) => {
          event.preventDefault()
          void arrive(link)
        }}
      >
        <label htmlFor="link">Pairing link</label>
        <input
          id="link"
          type="url"
          inputMode="url"
          autoComplete="off"
          spellCheck={false}
          placeholder="http://…/#pair=…"
          value={link}
          onChange={(event) => setLink(event.target.value)}
        />
        <button type="submit" className="button primary" disabled={link.trim() === ''}>
          Pair
        </button>
      </form>
    </div>
  )
}
