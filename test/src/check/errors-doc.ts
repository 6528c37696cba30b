/** docs/errors.md, made from the table in shared/src/errors.ts. */
import { ERRORS } from '@baton/shared/errors.ts'

export const ERRORS_DOC = 'docs/errors.md'

const HEAD = `# Errors

Every error that Baton shows or sends has a code. A code never changes its meaning. A message begins with what happened, adds
what is special about the case (a path, a number, a name), and ends with what to do. Where an error answers an HTTP request, its
status is the one below; a \`refusal\` frame carries the code itself.

Made from \`shared/src/errors.ts\` by \`npm run check -- --fix\`.

| code | what happened | what to do | status |
| --- | --- | --- | --- |
`

const cell = (text: string): string => text.replaceAll('|', '\\|')

export function errorsDocument(): string {
  const rows = Object.entries(ERRORS).map(
    ([code, { what, todo, status }]) => `| \`${code}\` | ${cell(what)} | ${cell(todo)} | ${status} |\n`,
  )
  return HEAD + rows.join('')
}
