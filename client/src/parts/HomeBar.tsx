import { useState, type ReactElement } from 'react'
import { move } from '../net/commands.ts'
import { homecomings, homecomingWords, type Homecoming } from '../store/home.ts'
import { useCell, usePaired, useRemoved, useRunners } from './hooks.ts'
import { unkeptWords } from './unkept-words.ts'

/** A runner is back from its sleep: offers to bring home what went on elsewhere meanwhile. */
export function HomeBar(): ReactElement | null {
  const { hub } = usePaired()
  const runners = useRunners()
  const { sessions } = useCell(hub.seen)
  const outbox = useCell(hub.outbox.items)
  const removed = useRemoved()
  const [put_off, setPutOff] = useState<ReadonlySet<string>>(new Set())
  const [problem, setProblem] = useState('')
  if (removed !== undefined) return null

  async function bring({ device, name, sids }: Homecoming): Promise<void> {
    setProblem('')
    try {
      await hub.outbox.enqueue(sids.map((sid) => move(hub.keyOf(sid), sid, { prefer: device }, name)))
    } catch (error) {
      setProblem(unkeptWords(error))
    }
  }

  return (
    <>
      {homecomings(runners, sessions, outbox, put_off).map((homecoming) => (
        <div key={homecoming.device} className="bar home" role="status">
          <p>{homecomingWords(homecoming)}</p>
          {problem && <p className="problem">{problem}</p>}
          <button
            type="button"
            className="button bare"
            onClick={() => setPutOff(put_off.union(new Set(homecoming.sids)))}
          >
            Not now
          </button>
          <button type="button" className="button" onClick={() => void bring(homecoming)}>
            Bring home
          </button>
        </div>
      ))}
    </>
  )
}
