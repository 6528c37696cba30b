import type { Rule } from '@baton/shared/journal.ts'
import type { ReactElement } from 'react'
import type { SafeRule } from '../store/rule-words.ts'

/** The step behind "Always for this session…": what would be allowed from now on, in words. */
export function AlwaysStep({
  always: { rule, words },
  onBack,
  onApprove,
}: {
  always: SafeRule
  onBack: () => void
  onApprove: (rule: Rule) => void
}): ReactElement {
  return (
    <div className="always">
      <p>
        From now on, in this session, on every machine, <Words text={words} /> runs without asking.
      </p>
      <div className="decide">
        <button type="button" className="button" onClick={onBack}>
          Back
        </button>
        <button type="button" className="button primary" onClick={() => onApprove(rule)}>
          Always allow
        </button>
      </div>
    </div>
  )
}

/** Every other part stands between backticks. */
function Words({ text }: { text: string }): ReactElement {
  return (
    <strong>{text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</strong>
  )
}
