/** Baton's name on the commits and refs that it makes. Equal content at an equal time gives equal commits. */
export function identity(seconds: string): Record<string, string> {
  const date = `@${seconds} +0000`
  return {
    GIT_AUTHOR_NAME: 'Baton',
    GIT_AUTHOR_EMAIL: 'baton@localhost',
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: 'Baton',
    GIT_COMMITTER_EMAIL: 'baton@localhost',
    GIT_COMMITTER_DATE: date,
  }
}
