/**
 * Every error that a person or a peer can meet, in one table. `docs/errors.md` is generated from it and a test keeps them
 * equal. A code never changes its meaning; `what` says what happened, `todo` what to do.
 */
interface ErrorSpec {
  what: string
  todo: string
  /** HTTP status where the error answers a request. */
  status: number
}

export const ERRORS = {
  // wire
  'bad-frame': {
    what: 'The frame is not a valid message of this protocol.',
    todo: 'Update the older side; if both are current, report a bug.',
    status: 400,
  },
  'unknown-message': {
    what: 'The message kind is unknown here.',
    todo: 'Update this side: the peer is newer.',
    status: 400,
  },
  'too-large': {
    what: 'The message is larger than the limit.',
    todo: 'Send less at once; files and long output go as blobs.',
    status: 413,
  },
  'too-fast': {
    what: 'Too many requests in a short time.',
    todo: 'Wait a moment; it is retried by itself.',
    status: 429,
  },
  'version-mismatch': {
    what: 'The two sides speak different versions of the protocol.',
    todo: 'Update the older side.',
    status: 426,
  },
  timeout: {
    what: 'The other side did not answer in time.',
    todo: 'Check the network; it is retried by itself.',
    status: 504,
  },
  offline: {
    what: 'There is no connection to the relay.',
    todo: 'What you typed is kept and sent when the connection is back.',
    status: 503,
  },
  internal: {
    what: 'Something went wrong inside.',
    todo: 'See the log of the relay or runner; report a bug with it.',
    status: 500,
  },
  // sign-in
  'not-signed-in': { what: 'This connection has not signed in.', todo: 'Reconnect.', status: 401 },
  'bad-signature': {
    what: 'The signature does not fit the device or account.',
    todo: 'Pair this device again.',
    status: 401,
  },
  'device-revoked': {
    what: 'This device was removed from the account.',
    todo: 'Pair it again from a device that is still in.',
    status: 403,
  },
  'accounts-full': {
    what: 'This relay serves no further accounts.',
    todo: 'Pair with an existing account (baton pair), or start the relay with a higher --accounts.',
    status: 403,
  },
  // pairing
  'link-invalid': {
    what: 'The pairing link is incomplete or damaged.',
    todo: 'Copy the whole link, or make a new one with: baton pair',
    status: 400,
  },
  'link-expired': {
    what: 'The pairing link was used already or is older than ten minutes.',
    todo: 'Make a new one: baton pair',
    status: 410,
  },
  // sessions
  'no-session': {
    what: 'There is no such session in this account.',
    todo: 'List them: baton ls',
    status: 404,
  },
  'session-ended': {
    what: 'The session has ended; it takes no more commands.',
    todo: 'Start a new one; transcript and files of this one are kept.',
    status: 409,
  },
  'session-limit': {
    what: 'The account has as many sessions as it may have.',
    todo: 'Sessions can not be removed yet: whoever runs the relay raises sessions_per_account (relay/src/options.ts) and restarts it.',
    status: 429,
  },
  'storage-limit': {
    what: 'The account has stored as many bytes as it may.',
    todo: 'Stored sessions can not be removed yet: whoever runs the relay raises bytes_per_account (relay/src/options.ts) and restarts it.',
    status: 507,
  },
  'inbox-full': {
    what: 'Too many commands wait for this session.',
    todo: 'Wait until a runner has taken some.',
    status: 429,
  },
  // lease and journal
  'placed-elsewhere': {
    what: 'The session must run on another runner: it is pinned there, or its files are stored nowhere else.',
    todo: 'Start that runner, or move the session: baton handoff SESSION --to RUNNER',
    status: 409,
  },
  'lease-held': {
    what: 'Another runner holds the session.',
    todo: 'Nothing; it is offered again when free.',
    status: 409,
  },
  'lease-lost': {
    what: 'The lease has ended or passed to another runner; nothing was written.',
    todo: 'Stop working on the session. Whoever holds it now continues.',
    status: 409,
  },
  'wrong-seq': {
    what: 'The entry does not follow the end of the journal; nothing was written.',
    todo: 'Read the journal again from the last known entry.',
    status: 409,
  },
  'already-consumed': {
    what: 'The command was applied before; nothing was written.',
    todo: 'Read the inbox again.',
    status: 409,
  },
  'no-blob': {
    what: 'The blob is not at the relay.',
    todo: 'Store it first; if it was stored, the relay has lost data.',
    status: 404,
  },
  'bad-blob': {
    what: 'The bytes do not have the hash that names them.',
    todo: 'Send them again.',
    status: 422,
  },
  'journal-gap': {
    what: 'Entries are missing between the known and the next one.',
    todo: 'Load the session again from its start.',
    status: 409,
  },
  'journal-rolled-back': {
    what: 'The relay has fewer entries than it confirmed: its store was rolled back.',
    todo: 'Check Redis persistence and failover; see the log for the lost entries.',
    status: 409,
  },
  'cannot-open': {
    what: 'The data could not be decrypted: damaged, moved, or of another account.',
    todo: 'If this device was paired with another account, pair it again.',
    status: 422,
  },
  // effects
  interrupted: {
    what: 'The runner ended while this ran; it may have run, wholly or in part.',
    todo: 'Look at the state of things before doing it again.',
    status: 409,
  },
  stopped: { what: 'Stopped by a person.', todo: 'Prompt again when ready.', status: 409 },
  'not-allowed': {
    what: 'A rule or the mode of the session forbids this call.',
    todo: 'Do it another way, or change the mode or the rule.',
    status: 403,
  },
  'not-approved': {
    what: 'The call needs an approval of exactly this call.',
    todo: 'Ask for approval, then call with it.',
    status: 403,
  },
  'unknown-tool': {
    what: 'There is no tool of this name.',
    todo: 'Use one of the offered tools.',
    status: 404,
  },
  'bad-input': {
    what: 'The input does not fit what is expected.',
    todo: 'Correct it as the message says.',
    status: 400,
  },
  'model-busy': {
    what: 'The model service has no room for the request now.',
    todo: 'Wait a moment, then try again; or choose another model.',
    status: 429,
  },
  'model-unreachable': {
    what: 'The model service did not give a whole answer.',
    todo: 'Check the connection of this runner, then try again.',
    status: 502,
  },
  'model-key': {
    what: 'The model service does not accept the key of this runner.',
    todo: 'Set a valid ANTHROPIC_API_KEY where the runner starts, then try again.',
    status: 401,
  },
  'model-unknown': {
    what: 'The model service has no model of this name.',
    todo: 'Choose another one (baton set SESSION --model MODEL, or in the app), then prompt again.',
    status: 404,
  },
  'context-full': {
    what: "The conversation is longer than the model's context.",
    todo: 'Compact the conversation, or begin a new session.',
    status: 413,
  },
  'model-error': {
    what: 'The model service answered with an error.',
    todo: 'See the message; prompt again to retry.',
    status: 502,
  },
  'model-refused': {
    what: 'The model declined to answer.',
    todo: 'Say it differently, or go on with something else.',
    status: 422,
  },
  'answer-cut': {
    what: 'The model reached its limit of tokens again and again before it had finished.',
    todo: 'Ask for a smaller step, or raise max_tokens in the settings.',
    status: 422,
  },
  'agent-stuck': {
    what: 'The agent met the same error again and again, and stopped.',
    todo: 'Help with the cause, or say how to go on.',
    status: 409,
  },
  'attempts-exhausted': {
    what: 'The effect failed as often as it may be tried.',
    todo: 'Look at the cause, then prompt again.',
    status: 502,
  },
  // guest
  'guest-failed': {
    what: 'The agent program ended with an error.',
    todo: 'See the message. Start a new session; transcript and files of this one are kept.',
    status: 500,
  },
  'guest-trapped': {
    what: 'The agent program hit a trap of its virtual machine.',
    todo: 'Start a new session; transcript and files of this one are kept.',
    status: 500,
  },
  'guest-memory': {
    what: 'The agent program used more memory than it may.',
    todo: 'Raise the limit, or make the agent keep less.',
    status: 507,
  },
  'guest-state': {
    what: 'The guest can not do this in its present state.',
    todo: 'Report a bug: the session loop broke the rules of the state machine.',
    status: 409,
  },
  'agent-invalid': {
    what: 'The agent file can not be bundled.',
    todo: 'Correct the file as the message says.',
    status: 422,
  },
  'snapshot-foreign': {
    what: 'The file is not a Baton snapshot.',
    todo: 'Give a file that Baton wrote.',
    status: 422,
  },
  'snapshot-torn': {
    what: 'The snapshot is cut short or damaged.',
    todo: 'Use an older copy; the previous snapshot and the journal are enough to continue.',
    status: 422,
  },
  'snapshot-engine': {
    what: 'The snapshot needs another engine.',
    todo: 'Fetch or build the engine that the message names.',
    status: 409,
  },
  'snapshot-baseline': {
    what: 'The snapshot needs another agent bundle or baseline.',
    todo: 'Use the bundle that the message names.',
    status: 409,
  },
  // workspace
  'copy-too-early': {
    what: 'The session can not be copied yet.',
    todo: 'Try again when its agent has begun and its files are stored.',
    status: 409,
  },
  'copy-outrun': {
    what: 'The session went on so fast that what was to be copied had been replaced.',
    todo: 'Try again, or stop the session first.',
    status: 409,
  },
  'copy-torn': {
    what: 'The copy is incomplete or damaged.',
    todo: 'Copy or export the session again; nothing of it was started.',
    status: 400,
  },
  'copy-foreign': {
    what: 'This is no copy of a session that can be read here.',
    todo: 'Take a file that baton export made, with the account or passphrase that it was made with.',
    status: 400,
  },
  'copy-untrusted': {
    what: 'The file does not say that a device of this account made it.',
    todo: 'Whoever made it decided what its agent does here. If you trust them, add --trust.',
    status: 403,
  },
  'workspace-missing': {
    what: 'The workspace folder does not exist on this runner.',
    todo: 'Start the session on a runner that has the folder.',
    status: 404,
  },
  'workspace-not-git': {
    what: 'The workspace is a git repository without files.',
    todo: 'Choose a clone that has a work tree, or a folder without git.',
    status: 422,
  },
  'workspace-in-use': {
    what: 'Another session works in this folder itself.',
    todo: 'Wait until it rests, choose another folder, or give this session a work tree of its own.',
    status: 409,
  },
  'workspace-busy': {
    what: "The files on this machine can not make way for the session's now; nothing was lost.",
    todo: 'Do what the message says, then go on with the session.',
    status: 409,
  },
  'workspace-unfit': {
    what: 'The folder can not be a workspace.',
    todo: 'Choose a folder that holds one piece of work.',
    status: 422,
  },
  'workspace-unreadable': {
    what: 'A file of the workspace can not be read.',
    todo: 'Mend its permissions, remove it, or list it in .gitignore.',
    status: 422,
  },
  'checkpoint-torn': {
    what: 'The stored state of the workspace is incomplete, damaged, or can not be laid out here; what was here is kept.',
    todo: 'Continue on the runner that had the session last: its work tree is still there.',
    status: 422,
  },
  'config-invalid': {
    what: 'The baton.config file can not be used.',
    todo: 'Correct it as the message says.',
    status: 422,
  },
  'config-changed': {
    what: 'The config of this folder, or what it imports, is not what you trusted, or what was there before a session worked in the folder itself.',
    todo: 'Look at the file, or put back what was deleted. If all is as you want it, run: baton trust FOLDER. Until then nothing of it runs.',
    status: 422,
  },
  'outside-workspace': {
    what: 'The path leads out of the workspace.',
    todo: 'Use a path inside the workspace.',
    status: 403,
  },
  // machine
  'sandbox-missing': {
    what: 'Commands are to run in a sandbox, and there is none on this machine.',
    todo: 'On Linux install bubblewrap and allow user namespaces; elsewhere turn the sandbox off. Until then no command runs.',
    status: 503,
  },
  'address-unusable': {
    what: 'It can not listen there.',
    todo: 'Choose another address or port.',
    status: 422,
  },
  'port-taken': {
    what: 'The port is in use by another program.',
    todo: 'Choose another with --port N, or stop that program.',
    status: 409,
  },
  'no-redis': {
    what: 'redis-server is not installed.',
    todo: 'Install it: apt-get install redis-server — or set REDIS_URL.',
    status: 503,
  },
  'store-down': {
    what: 'Redis does not answer.',
    todo: 'Check that it runs; connections resume by themselves.',
    status: 503,
  },
  'disk-full': {
    what: 'There is no space left on the disk.',
    todo: 'Free some space; nothing was lost.',
    status: 507,
  },
  'data-folder': {
    what: 'The data folder can not be used.',
    todo: 'Make it a writable folder, or choose another with --data DIR.',
    status: 500,
  },
  'data-in-use': {
    what: 'Another Baton runs on this data folder.',
    todo: 'Stop it, or choose another folder with --data DIR.',
    status: 409,
  },
  'no-identity': {
    what: 'This machine has no account yet.',
    todo: 'Join one with --join LINK, or start afresh with: baton up',
    status: 401,
  },
  'result-lost': {
    what: 'The call has ended, but its result could not be kept.',
    todo: 'What it did stands: look at that, and let it give less back.',
    status: 500,
  },
  'no-runner': {
    what: 'No runner that is online can take the session.',
    todo: 'See which there are: baton runners',
    status: 503,
  },
  'runner-off': {
    what: 'The runner of this machine does not run.',
    todo: 'Start it: baton up — or: baton runner --workspace DIR',
    status: 503,
  },
  'no-document': {
    what: 'The session has no document of this name.',
    todo: 'See which it has: baton docs SESSION',
    status: 404,
  },
  'nothing-waits': {
    what: 'No such call waits for a decision.',
    todo: 'See what waits: baton approve SESSION',
    status: 409,
  },
  'not-ended': {
    what: 'Only sessions that have ended can be dismissed.',
    todo: 'See which have: baton dismiss',
    status: 409,
  },
  'which-session': {
    what: 'More than one session fits.',
    todo: 'Name one by its id, the first letters of it, or words of its title.',
    status: 409,
  },
  'file-unusable': {
    what: 'The file can not be read or written.',
    todo: 'Check its path and its permissions.',
    status: 422,
  },
  usage: { what: 'The command line is not right.', todo: 'See: baton help', status: 400 },
} as const satisfies Record<string, ErrorSpec>

export type ErrorCode = keyof typeof ERRORS

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code)
}

/**
 * An error with a code of the table. `detail` adds what is special about this case: a path, a number, a name. `todo`: what to do about
 * it, when more can be said here than in the table.
 */
export class BatonError extends Error {
  override name = 'BatonError'
  readonly code: ErrorCode
  readonly detail: string
  /** What to do about it. */
  readonly todo: string

  constructor(code: ErrorCode, detail = '', options?: ErrorOptions & { todo?: string }) {
    super(detail === '' ? ERRORS[code].what : `${ERRORS[code].what} ${detail}`, options)
    this.code = code
    this.detail = detail
    this.todo = options?.todo ?? ERRORS[code].todo
  }
}

/** One line for a person: what happened, what to do. Unknown errors keep their message, never a stack. */
export function explain(error: unknown): string {
  if (error instanceof BatonError) return `${error.message} ${error.todo}`
  return error instanceof Error ? error.message : String(error)
}
