/** Where the files of a virtual workspace seem to be. */
export const ROOT = '/workspace'
