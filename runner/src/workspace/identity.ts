/**
 * Baton's name on the commits and refs that it makes. Equal content at an equal time gives equal commits. `seconds`: since 1970;
 * absent: now, for logs of refs, in which git passes over what is dated 0.
 */
export function identity(seconds = String(Math.floor(Date.now() / 1000))): Record<string, string> {
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
