import type { Mode } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { isTrueCall, questionOf } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { lastPart } from '@baton/shared/view/units.ts'
import { useId, useMemo, useState, type ReactElement } from 'react'
import { modeName } from '@baton/shared/view/modes.ts'
import type { OutboxItem } from '../store/outbox.ts'
import type { Always } from '../store/rule-words.ts'
import { AlwaysStep } from './AlwaysStep.tsx'
import { CallView } from './CallView.tsx'
import { DenyStep } from './DenyStep.tsx'
import { Whole } from './Whole.tsx'

/** What a person decides. `mode`: the session goes on in it, told before the decision. */
export interface Decided {
  approved: boolean
  always?: Rule
  /** What the agent is told with it. */
  note?: string
  mode?: Mode
}

/**
 * One call that waits for a decision: the whole of it, then Deny and, once its end was on screen, Approve. It leaves when the journal says that the
 * decision was applied, on every device alike (F34, F37); until then it says what became of the tap (F32, F33).
 */
export function ApprovalCard({
  approval,
  always,
  given,
  connected,
  runner,
  where,
  removed,
  onDecide,
  onRetry,
}: {
  approval: Approval
  /** The rule that "always" would mean, or why there is none; undefined: none is about such a call. */
  always: Always | undefined
  /** This device's decision, on its way. */
  given: OutboxItem | undefined
  connected: boolean
  /** Name of the runner that asks; undefined: no runner holds the session now. */
  runner: string | undefined
  /** Runner and workspace, for the person to know what it touches. */
  where: string
  /** Why this device can decide nothing any more. */
  removed: string | undefined
  onDecide: (decided: Decided) => void
  onRetry: (id: string) => void
}): ReactElement {
  const is_true = useMemo(() => isTrueCall(approval), [approval])
  const [step, setStep] = useState<'decide' | 'always' | 'deny'>('decide')
  const is_plan = approval.name === 'propose_plan'
  const [mode, setMode] = useState<Mode>('ask')
  const [seen, setSeen] = useState(false)
  const unread = useId()
  const question = questionOf(approval.name)
  return (
    <section className="approval-card" aria-label={`Approval: ${question}`}>
      <div>
        <h2>{question}</h2>
        {where && <p className="small quiet">{where}</p>}
      </div>
      <Whole title={question} onSeen={() => setSeen(true)}>
        <CallView name={approval.name} input={approval.input} />
      </Whole>
      {!is_true && (
        <p className="small problem" role="alert">
          What is shown here is not what would run: the call and its digest differ. It can’t be approved.
        </p>
      )}
      {given ? (
        <div className="given" role="status">
          <p className="small">{givenWords(given, connected, runner, removed)}</p>
          {given.state === 'refused' && removed === undefined && (
            <button type="button" className="button" onClick={() => onRetry(given.id)}>
              Try again
            </button>
          )}
        </div>
      ) : step === 'always' && always && 'rule' in always && removed === undefined ? (
        <AlwaysStep
          always={always}
          onBack={() => setStep('decide')}
          onApprove={(rule) => onDecide({ approved: true, always: rule })}
        />
      ) : step === 'deny' && removed === undefined ? (
        <DenyStep
          effect={approval.effect}
          onBack={() => setStep('decide')}
          onDeny={(note) => onDecide({ approved: false, note })}
        />
      ) : (
        <div className="decision">
          {removed !== undefined && <p className="small problem">{removed}</p>}
          {is_plan && <PlanMode mode={mode} onChoose={setMode} />}
          <div className="decide">
            <button
              type="button"
              className="button"
              disabled={removed !== undefined}
              onClick={() => onDecide({ approved: false })}
            >
              Deny
            </button>
            <button
              type="button"
              className="button primary"
              disabled={!is_true || removed !== undefined}
              aria-disabled={!seen}
              aria-describedby={seen ? undefined : unread}
              onClick={() => seen && onDecide({ approved: true, ...(is_plan && { mode }) })}
            >
              Approve
            </button>
          </div>
          {!seen && (
            <p className="only-read" id={unread}>
              Read it to its end first.
            </p>
          )}
          {always && 'reason' in always && <p className="small quiet">{always.reason}</p>}
          <div className="others">
            <button
              type="button"
              className="button bare"
              disabled={removed !== undefined}
              onClick={() => setStep('deny')}
            >
              Deny with a note…
            </button>
            {always && 'rule' in always && (
              <button
                type="button"
                className="button bare"
                disabled={!is_true || removed !== undefined || !seen}
                onClick={() => setStep('always')}
              >
                Always for this session…
              </button>
            )}
          </div>
        </div>
      )}
    </section>
  )
}

/** How the session goes on once the plan is approved. */
function PlanMode({ mode, onChoose }: { mode: Mode; onChoose: (mode: Mode) => void }): ReactElement {
  return (
    <fieldset className="then">
      <legend className="small quiet">Goes on in this mode</legend>
      <div className="segments">
        {(['ask', 'edit'] as const).map((other) => (
          <label key={other}>
            <input type="radio" name="then" checked={other === mode} onChange={() => onChoose(other)} />
            <span>{modeName(other)}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

/** Which runner and folder a call touches; `cloud-1 · shop`, or, when that runner does not have it, who else may. */
export function whereWords(
  place: string | undefined,
  at: 'holds' | 'let-go' | 'away',
  workspace: string | undefined,
): string {
  const about = at === 'away' ? `${place} is away` : `last on ${place}`
  const runner =
    place === undefined || at === 'holds' ? place : `on the machine that takes it next (${about})`
  return [runner, workspace && lastPart(workspace)].filter(Boolean).join(' · ')
}

function givenWords(
  given: OutboxItem,
  connected: boolean,
  runner: string | undefined,
  removed: string | undefined,
): string {
  const approved = given.shown.as === 'decision' && given.shown.approved
  const what = approved ? 'Approved' : 'Denied'
  switch (given.state) {
    case 'queued':
    case 'sent':
      if (removed !== undefined) return `${what}, but not sent. ${removed}`
      return connected ? `${what}. Sending…` : `${what}. Kept here and sent when the connection is back.`
    case 'acknowledged':
      return runner ? `${what}. ${runner} takes it next.` : `${what}. Held until a runner is back.`
    case 'refused':
      return given.error?.message ?? 'The relay refused it.'
  }
}
