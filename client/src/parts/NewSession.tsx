import { newId } from '@baton/shared/keys.ts'
import { lazy, Suspense, useEffect, useState, type ReactElement } from 'react'
import { newSession, type Said } from '../net/commands.ts'
import { navigate } from '../router.ts'
import type { Runner } from '../store/account.ts'
import type { LastUsed } from '../store/db.ts'
import { NEW_SESSION } from '../store/drafts.ts'
import { modeName } from '@baton/shared/view/modes.ts'
import { isTaking, presenceWords } from '@baton/shared/view/runners.ts'
import { Composer } from './Composer.tsx'
import { usePaired, useRunners } from './hooks.ts'

const ModeSheet = lazy(() => import('./ModeSheet.tsx'))

/**
 * What a new session starts with: the runner that was picked; else the one used last, if it takes sessions now; else one that
 * does, if possible with the same workspace.
 */
export function defaultsOf(
  runners: readonly Runner[],
  last: Partial<LastUsed>,
  picked?: string,
): LastUsed | undefined {
  const able = runners.filter((runner) => (runner.about?.workspaces.length ?? 0) > 0)
  const taking = able.filter(isTaking)
  const runner =
    able.find(({ device }) => device === picked) ??
    taking.find(({ device }) => device === last.runner) ??
    taking.find(({ about }) => about?.workspaces.some(({ path }) => path === last.workspace)) ??
    taking[0] ??
    able.find(({ device }) => device === last.runner) ??
    able[0]
  const workspaces = runner?.about?.workspaces ?? []
  const workspace = workspaces.find(({ path }) => path === last.workspace) ?? workspaces[0]
  if (!runner || !workspace) return undefined
  return { runner: runner.device, workspace: workspace.path, mode: last.mode ?? 'ask' }
}

/** What starts another session like `old`: on its runner if the workspace is known there, else on one where it is. */
export function sameAgain(runners: readonly Runner[], old: Partial<LastUsed>): LastUsed | undefined {
  const { workspace, mode = 'ask' } = old
  if (workspace === undefined) return undefined
  const able = runners.filter(({ about }) => about?.workspaces.some(({ path }) => path === workspace))
  const runner = able.find(({ device }) => device === old.runner) ?? able.find(isTaking) ?? able[0]
  return runner && { runner: runner.device, workspace, mode }
}

export function NewSession(): ReactElement {
  const { hub, db } = usePaired()
  const runners = useRunners()
  const [last, setLast] = useState<Partial<LastUsed>>({})
  const [chosen, setChosen] = useState<Partial<LastUsed>>({})
  const [choosing, setChoosing] = useState(false)
  useEffect(() => {
    void db
      .get('last', 'new-session')
      .then((used) => used && setLast(used))
      .catch(() => undefined)
  }, [db])
  const use = defaultsOf(runners, { ...last, ...chosen }, chosen.runner)
  const runner = runners.find(({ device }) => device === use?.runner)

  async function start(said: Said): Promise<void> {
    if (!use) return
    const sid = newId()
    await hub.outbox.enqueue(newSession(hub.keyOf(sid), { sid, ...said, ...use }), NEW_SESSION)
    void db.put('last', use, 'new-session').catch(() => undefined)
    navigate(`/s/${sid}`)
  }

  return (
    <>
      <Composer draft={NEW_SESSION} placeholder="What should be done?" starts disabled={!use} onSend={start}>
        {use && runner ? (
          <>
            <Pick
              label="Runner"
              value={use.runner}
              options={runners
                .filter(({ about }) => about && about.workspaces.length > 0)
                .map((one) => [
                  one.device,
                  isTaking(one) ? (one.about?.name ?? '') : `${one.about?.name} (${presenceWords(one)})`,
                ])}
              onPick={(device) => setChosen({ ...chosen, runner: device })}
            />
            <Pick
              label="Workspace"
              value={use.workspace}
              options={(runner.about?.workspaces ?? []).map(({ path, name }) => [path, name])}
              onPick={(workspace) => setChosen({ ...chosen, workspace })}
            />
            <button
              type="button"
              className={use.mode === 'full' ? 'pick bold' : 'pick'}
              aria-label={`Mode: ${modeName(use.mode)}`}
              aria-haspopup="dialog"
              onClick={() => setChoosing(true)}
            >
              {modeName(use.mode)}
            </button>
          </>
        ) : (
          <p className="small quiet">No runner is known yet. Start one: baton runner</p>
        )}
      </Composer>
      {choosing && use && (
        <Suspense fallback={null}>
          <ModeSheet
            mode={use.mode}
            onChoose={(mode) => {
              setChosen({ ...chosen, mode })
              setChoosing(false)
            }}
            onClose={() => setChoosing(false)}
          />
        </Suspense>
      )}
    </>
  )
}

/** A native select, so that the phone brings its own picker. */
function Pick({
  label,
  value,
  options,
  onPick,
}: {
  label: string
  value: string
  options: (readonly [value: string, name: string])[]
  onPick: (value: string) => void
}): ReactElement {
  return (
    <select
      className="pick"
      aria-label={label}
      value={value}
      onChange={(event) => onPick(event.target.value)}
    >
      {options.map(([option, name]) => (
        <option key={option} value={option}>
          {name}
        </option>
      ))}
    </select>
  )
}
