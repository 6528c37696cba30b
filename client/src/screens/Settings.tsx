import { explain } from '@baton/shared/errors.ts'
import { useState, type ReactElement } from 'react'
import { renderSVG } from 'uqr'
import { CopyButton } from '../parts/Code.tsx'
import { ConnectionDot } from '../parts/ConnectionBar.tsx'
import { useCell, useDevices, useNow, usePaired, useRunners } from '../parts/hooks.ts'
import { Sheet } from '../parts/Sheet.tsx'
import { devicesInOrder, type NamedDevice } from '../store/account.ts'
import { chooseTheme, theme, type Theme } from '../store/theme.ts'
import { agoWords } from '@baton/shared/view/units.ts'

export function Settings(): ReactElement {
  return (
    <div className="screen">
      <header className="head">
        <h1>Settings</h1>
        <ConnectionDot />
      </header>
      <main className="scroll">
        <Devices />
        <ThemeChoice />
      </main>
    </div>
  )
}

function Devices(): ReactElement {
  const { hub } = usePaired()
  const devices = devicesInOrder(useDevices())
  const [revoking, setRevoking] = useState<NamedDevice | undefined>()
  const [pairing, setPairing] = useState(false)
  return (
    <section aria-labelledby="devices">
      <h2 id="devices" className="part">
        Devices
      </h2>
      <ul role="list" className="cards">
        {devices.map((device) => (
          <li key={device.device} className="card device">
            <DeviceLines device={device} own={device.device === hub.device.id} />
            {device.device !== hub.device.id && (
              <button
                type="button"
                className="button bare"
                aria-label={`Revoke ${device.about?.name ?? 'device'}`}
                onClick={() => setRevoking(device)}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
      <div className="below">
        <button type="button" className="button" onClick={() => setPairing(true)}>
          Pair another device
        </button>
      </div>
      {pairing && <PairSheet onClose={() => setPairing(false)} />}
      {revoking && <RevokeSheet device={revoking} onClose={() => setRevoking(undefined)} />}
    </section>
  )
}

function DeviceLines({ device, own }: { device: NamedDevice; own: boolean }): ReactElement {
  const now = useNow()
  return (
    <div className="device-lines">
      <p className="ellipsis">
        {device.about?.name ?? device.device.slice(0, 6)}
        {own && <span className="quiet"> · this device</span>}
      </p>
      <p className="small quiet">
        {device.about?.kind ?? 'unreadable'} · paired {agoWords(device.added_at, now)} · seen{' '}
        {agoWords(device.seen_at, now)}
      </p>
    </div>
  )
}

function RevokeSheet({ device, onClose }: { device: NamedDevice; onClose: () => void }): ReactElement {
  const { hub } = usePaired()
  const [problem, setProblem] = useState('')
  const name = device.about?.name ?? 'this device'
  const runs = useRunners().some((runner) => runner.device === device.device)
  return (
    <Sheet title={`Revoke ${name}?`} onClose={onClose}>
      {runs && <p>{name} runs sessions; it will stop serving them.</p>}
      <p>
        It is disconnected at once and can’t sign in again. What it has already read it keeps: if it was
        stolen, change the secrets that its sessions have seen.
      </p>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <div className="sheet-actions">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="button primary"
          onClick={() => {
            hub.revoke(device.device).then(onClose, (error: unknown) => setProblem(explain(error)))
          }}
        >
          Revoke
        </button>
      </div>
    </Sheet>
  )
}

const LOCAL = /^(localhost|127\.|\[::1\])/

function PairSheet({ onClose }: { onClose: () => void }): ReactElement {
  const { hub } = usePaired()
  const [link, setLink] = useState('')
  const [problem, setProblem] = useState('')
  const connected = useCell(hub.connection).at === 'open'
  function make(): void {
    setProblem('')
    hub.invite().then(
      (invitation) => setLink(invitation.link),
      (error: unknown) => setProblem(explain(error)),
    )
  }
  return (
    <Sheet title="Pair another device" onClose={onClose}>
      {link === '' ? (
        <>
          <p>
            A link lets one device join your account, once, within ten minutes. Whoever opens it can read your
            sessions and approve commands.
          </p>
          {problem && (
            <p className="problem" role="alert">
              {problem}
            </p>
          )}
          <div className="sheet-actions">
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
            <button type="button" className="button primary" disabled={!connected} onClick={make}>
              Show link
            </button>
          </div>
        </>
      ) : (
        <>
          <QrCode text={link} />
          <p>Scan it with the camera of the other phone, or open the link there.</p>
          <div className="link-line">
            <code className="ellipsis" data-testid="pairing-link">
              {link}
            </code>
            <CopyButton text={link} />
          </div>
          <p className="small quiet">
            For a laptop or server: <code>baton runner --join LINK</code>
          </p>
          {LOCAL.test(location.host) && (
            <p className="small problem">
              This page was opened at {location.host}, an address that only this computer can reach. Open it
              by the computer’s name or address in your network to pair a phone.
            </p>
          )}
          <div className="sheet-actions">
            <button type="button" className="button" onClick={onClose}>
              Done
            </button>
          </div>
        </>
      )}
    </Sheet>
  )
}

/** Black on white in both themes, with a quiet zone: what cameras expect. */
function QrCode({ text }: { text: string }): ReactElement {
  const image = `data:image/svg+xml,${encodeURIComponent(renderSVG(text, { border: 2, ecc: 'M' }))}`
  return <img className="qr" src={image} alt="QR code of the pairing link" width={232} height={232} />
}

const THEMES: readonly [Theme, string][] = [
  ['system', 'System'],
  ['light', 'Light'],
  ['dark', 'Dark'],
]

function ThemeChoice(): ReactElement {
  const now = useCell(theme)
  return (
    <section aria-labelledby="theme">
      <h2 id="theme" className="part">
        Theme
      </h2>
      <fieldset className="segments" aria-labelledby="theme">
        {THEMES.map(([value, name]) => (
          <label key={value}>
            <input type="radio" name="theme" checked={now === value} onChange={() => chooseTheme(value)} />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
    </section>
  )
}
