/** What a config may say. */
import * as v from 'valibot'
import { Rule } from '@baton/shared/journal.ts'
import { McpSettings } from '../mcp/settings.ts'
import { SandboxSettings } from '../sandbox/settings.ts'
import { WorkspaceSettings } from '../workspace/settings.ts'
import type { Execute } from './host-tool.ts'
import { inputSchema, type InputSchema } from './schema.ts'

function asInputSchema({ dataset, addIssue, NEVER }: v.RawTransformContext<unknown>): InputSchema {
  try {
    return inputSchema(dataset.value)
  } catch (error) {
    addIssue({ message: error instanceof Error ? error.message : String(error) })
    return NEVER
  }
}

const ToolName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'a tool name has 1 to 64 letters, digits, _ or -'),
)
export const ConfigSchema = v.strictObject({
  tools: v.optional(
    v.record(
      ToolName,
      v.strictObject({
        description: v.pipe(v.string(), v.minLength(1)),
        input: v.pipe(v.unknown(), v.rawTransform(asInputSchema)),
        replay: v.picklist(['safe', 'never']),
        access: v.optional(v.picklist(['read', 'edit', 'run']), 'run'),
        execute: v.custom<Execute>((value) => typeof value === 'function', 'must be a function'),
      }),
    ),
    {},
  ),
  // Strict: without a prefix that is spelled right a rule would be about every call.
  rules: v.optional(v.array(v.strictObject(Rule.entries)), []),
  workspace: v.optional(WorkspaceSettings, {}),
  mcp: v.optional(McpSettings, {}),
  sandbox: v.optional(SandboxSettings, false),
  fetch: v.optional(v.strictObject({ allow: v.optional(v.array(v.string()), []) }), {}),
})
