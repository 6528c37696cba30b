/** The `sandbox` part of baton.config.ts. */
import * as v from 'valibot'

export const SandboxSettings = v.union([
  v.boolean(),
  v.strictObject({
    /** May commands reach the network, this machine's own ports included? Default: no. */
    network: v.optional(v.boolean(), false),
    /** Folders beside the work tree that they may write, absolute or `~/…`: caches of package managers, say. */
    write: v.optional(v.array(v.pipe(v.string(), v.regex(/^(\/|~\/)/, 'must begin with / or ~/'))), []),
    /** Folders in the home folder, which is hidden otherwise, that they may read. */
    read: v.optional(v.array(v.pipe(v.string(), v.regex(/^(\/|~\/)/, 'must begin with / or ~/'))), []),
    /** Variables of the runner's environment that they get beside PATH, HOME and the like. Secrets of the runner stay out. */
    env: v.optional(
      v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable'))),
      [],
    ),
  }),
])
/** Of a sandbox of which nothing was said but that it is wanted. */
export const SANDBOX_DEFAULTS = { network: false, write: [], read: [], env: [] }
export type SandboxSettings = v.InferOutput<typeof SandboxSettings>
