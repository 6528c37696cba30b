/** What the system says of a file that it can't read or write, in words for people. */

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'it, or its folder, is not there',
  EACCES: 'there is no permission',
  EPERM: 'it is not permitted',
  EROFS: 'the disk is read-only',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EEXIST: 'there is something else in its place',
  ENAMETOOLONG: 'its name is too long',
  ELOOP: 'its links lead in a circle',
  EBUSY: 'it is in use',
  EIO: 'the disk fails',
  EMFILE: 'too many files are open',
  ENFILE: 'too many files are open',
  ENOSPC: 'the disk is full',
  EDQUOT: 'no more space is granted',
  EFBIG: 'it is too large for the disk',
  ENOTSUP: 'the disk can not do that',
}

/** `EACCES`, if a system call failed with one. */
export function systemCode(cause: unknown): string | undefined {
  const { code } = (cause ?? {}) as { code?: unknown }
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}

/** `there is no permission (EACCES)`; what is no error of the system keeps its words. */
export function systemWords(cause: unknown): string {
  const code = systemCode(cause)
  if (code === undefined) return cause instanceof Error ? cause.message : String(cause)
  const words = WORDS[code]
  return words === undefined ? code : `${words} (${code})`
}
