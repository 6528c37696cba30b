import type { ReactElement } from 'react'
import { ConnectionDot } from '../parts/ConnectionBar.tsx'
import { useCell, useNow, usePaired, useRunners } from '../parts/hooks.ts'
import { Icon } from '../parts/icons.tsx'
import { Link } from '../parts/Link.tsx'
import { isCloud, type Runner } from '../store/account.ts'
import { isTaking, presenceWords, roomWords } from '@baton/shared/view/runners.ts'
import { ago } from '@baton/shared/view/units.ts'

export function Runners(): ReactElement {
  const { hub } = usePaired()
  const runners = useRunners().toSorted((a, b) => Number(b.online) - Number(a.online) || b.since - a.since)
  const listed = useCell(hub.listed)
  return (
    <div className="screen">
      <header className="head">
        <h1>Runners</h1>
        <ConnectionDot />
      </header>
      <main className="scroll">
        {runners.length === 0 ? (
          <div className="empty">
            <Icon name="laptop" size={48} />
            <p>{listed ? 'No runner yet.' : 'Looking for runners…'}</p>
            {listed && (
              <p className="quiet">
                A runner does the work: on your laptop, on a server. Start one in a project folder with{' '}
                <code>baton runner</code>.
              </p>
            )}
          </div>
        ) : (
          <ul role="list" className="cards">
            {runners.map((runner) => (
              <li key={runner.device} className="card">
                <RunnerCard runner={runner} />
              </li>
            ))}
          </ul>
        )}
      </main>
    </div>
  )
}

function RunnerCard({ runner }: { runner: Runner }): ReactElement {
  const { hub } = usePaired()
  const now = useNow()
  const { about, since } = runner
  const sessions = useCell(hub.seen).sessions.filter(({ holder }) => holder === runner.device)
  return (
    <>
      <div className="card-head">
        <Icon name={isCloud(runner) ? 'cloud' : 'laptop'} />
        <h2 className="ellipsis">{about?.name ?? runner.device.slice(0, 6)}</h2>
        <span className="small quiet">
          <span className={isTaking(runner) ? 'chip-dot on' : 'chip-dot'} /> {presenceWords(runner)} ·{' '}
          {ago(since, now)}
        </span>
      </div>
      <dl className="facts small">
        <dt>Sessions</dt>
        <dd>{roomWords(runner)}</dd>
        {about && about.pools.length > 0 && (
          <>
            <dt>Pools</dt>
            <dd>{about.pools.join(', ')}</dd>
          </>
        )}
        {about && (
          <>
            <dt>Model</dt>
            <dd>
              {about.model === 'rehearsal' ? 'Rehearsal: scripted, because it has no API key' : 'Anthropic'}
            </dd>
            <dt>System</dt>
            <dd>{about.platform}</dd>
            {about.workspaces.length > 0 && <dt>Folders</dt>}
            <dd>
              {about.workspaces.map(({ path, name, branch }) => (
                <span key={path} className="folder">
                  {name}
                  {branch && <span className="quiet"> · {branch}</span>}
                </span>
              ))}
            </dd>
          </>
        )}
      </dl>
      {sessions.length > 0 && (
        <ul role="list" className="held">
          {sessions.map(({ sid, meta }) => (
            <li key={sid}>
              <Link to={`/s/${sid}`}>
                <span className="ellipsis">{hub.metaOf(sid, meta)?.title ?? 'Session'}</span>
                <Icon name="right" size={16} />
              </Link>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
