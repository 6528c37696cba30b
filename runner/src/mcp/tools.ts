/** The tools of MCP servers among the agent's own: `mcp__<server>__<tool>`. */
import { createHash } from 'node:crypto'
import type { CallToolResult, Tool as McpTool } from '@modelcontextprotocol/client'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json, ToolSpec } from '@baton/shared/guest.ts'
import type { InputSchema } from '../config/schema.ts'
import { objectionOf, Refusal, refused } from '../tools/define.ts'
import { pictureOf, pictureType } from '../tools/pictures.ts'
import { bounded } from '../tools/text.ts'
import type { CallPlace, Picture, Tool, ToolAnswer } from '../tools/tool.ts'
import { McpFailure, McpServer, type McpPlace } from './server.ts'
import { keyOf } from './servers.ts'
import type { McpDefinition, McpSettings } from './settings.ts'

const NAME_CHARS = 64
const DESCRIPTION_CHARS = 4_000
const IMAGES_MAX = 8

/** What servers offer, remembered while this process runs: asking means starting them. */
const offers = new Map<string, Promise<McpTool[]>>()

/**
 * The tools of a new session, in the order of the settings and then of their names. A server that can't be had is told of, and
 * its tools are missing. `place`: where servers run that are only asked what they offer.
 */
export async function mcpTools(
  settings: McpSettings,
  options: { place: McpPlace; env: NodeJS.ProcessEnv; tell: (text: string) => void },
): Promise<Tool[]> {
  const { place, env, tell } = options
  const lists = await Promise.all(
    Object.entries(settings).map(async ([name, definition]) => {
      const key = `${place.folder}\0${keyOf(name, definition)}`
      const offer = offers.get(key) ?? offerOf(new McpServer({ name, definition, place, env }))
      offers.set(key, offer)
      try {
        return specsOf(name, definition, await offer).map((spec) => toolOf(spec, name, definition))
      } catch (error) {
        offers.delete(key)
        tell(`The tools of the MCP server ${name} are missing in this session: ${wordsOf(error)}`)
        return []
      }
    }),
  )
  return lists.flat()
}

/** The tools of a session that began elsewhere: those of its start message. No server is asked before it is called. */
export function knownMcpTools(settings: McpSettings, known: readonly ToolSpec[]): Tool[] {
  return known.flatMap((spec) => {
    const [, name] = /^mcp__([A-Za-z0-9-]+)__/.exec(spec.name) ?? []
    return name === undefined ? [] : [toolOf(spec, name, settings[name])]
  })
}

async function offerOf(server: McpServer): Promise<McpTool[]> {
  try {
    const tools = await server.tools()
    return JSON.parse(server.redact(JSON.stringify(tools))) as McpTool[]
  } finally {
    await server.end()
  }
}

function specsOf(name: string, definition: McpDefinition, offered: McpTool[]): ToolSpec[] {
  const specs = offered.map((tool): ToolSpec => {
    const own = definition.tools[tool.name]
    return {
      name: shownName(name, tool.name),
      description: (tool.description ?? tool.title ?? tool.name).slice(0, DESCRIPTION_CHARS).toWellFormed(),
      schema: JSON.parse(JSON.stringify(tool.inputSchema)) as { [key: string]: Json },
      replay: own?.replay ?? definition.replay,
      access: own?.access ?? definition.access,
    }
  })
  const unique = new Map(specs.map((spec) => [spec.name, spec]))
  return [...unique.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Letters, digits, _ and - only, at most 64: a longer name ends with some digits of its hash. */
export function shownName(server: string, tool: string): string {
  const name = `mcp__${server}__${tool.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`
  if (name.length <= NAME_CHARS) return name
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, 8)
  return `${name.slice(0, NAME_CHARS - 9)}_${hash}`
}

function toolOf(spec: ToolSpec, name: string, definition: McpDefinition | undefined): Tool {
  let schema: Promise<InputSchema['check'] | undefined> | undefined
  /** Why the call can't be made, before its server is even started. */
  const refusalOf = async (
    input: Record<string, Json>,
    place: CallPlace | undefined,
  ): Promise<Refusal | undefined> => {
    if (!definition || (place && !place.stay?.mcp)) {
      const text = `The MCP server ${name} is not set up on this machine, so ${spec.name} can not be used here. Go on without it, or ask the person to move the session to a machine that has it, or to add ${name} to baton.config.ts there.`
      return new Refusal(text, 'mcp-missing')
    }
    schema ??= checkOf(spec)
    const checked = await (await schema)?.(input)
    return checked && 'words' in checked
      ? new Refusal(`The input of ${spec.name} is not valid: ${checked.words}`)
      : undefined
  }
  return {
    spec,
    async objection(input, place) {
      const refusal = await refusalOf(input, place)
      return refusal && objectionOf(refusal)
    },
    async execute(input, { root, stay, signal }) {
      if (signal.aborted) throw new BatonError('stopped')
      const refusal = await refusalOf(input, { root, ...(stay ? { stay } : {}) })
      if (refusal) return refused(refusal.message, refusal.code)
      const servers = stay?.mcp
      if (!definition || !servers) throw new BatonError('internal', '(no MCP servers here)')
      const server = servers.server(name, definition)
      try {
        const offered = (await server.tools(signal)).find((tool) => shownName(name, tool.name) === spec.name)
        if (!offered)
          return refused(`The MCP server ${name} on this machine does not offer this tool.`, 'mcp-missing')
        return answerOf(await server.call(offered.name, input, signal), (text) => server.redact(text))
      } catch (error) {
        if (!(error instanceof McpFailure)) throw error
        return refused(`The MCP server ${name} can not be used: ${error.message}`, 'mcp-failed')
      }
    },
  }
}

/** Undefined where a server's schema is none that can be checked: then the server checks. */
async function checkOf({ schema }: ToolSpec): Promise<InputSchema['check'] | undefined> {
  const { inputSchema } = await import('../config/schema.ts')
  try {
    return inputSchema(schema).check
  } catch {
    return undefined
  }
}

function answerOf(result: CallToolResult, redact: (text: string) => string): ToolAnswer {
  const texts: string[] = []
  const images: Picture[] = []
  for (const block of result.content ?? []) {
    switch (block.type) {
      case 'text':
        texts.push(block.text)
        break
      case 'image': {
        const picture = images.length < IMAGES_MAX ? pictureIn(block.data) : 'there are too many'
        if (typeof picture === 'string') texts.push(`(A picture is left out: ${picture})`)
        else images.push(picture)
        break
      }
      case 'resource': {
        const { resource } = block
        if ('text' in resource) texts.push(`${resource.uri}:\n${resource.text}`)
        else texts.push(`(${resource.uri}: ${resource.mimeType ?? 'a file'}, which can not be shown)`)
        break
      }
      case 'resource_link':
        texts.push(`${block.name}: ${block.uri}`)
        break
      case 'audio':
        texts.push(`(A recording, ${block.mimeType}, which can not be heard here)`)
        break
    }
  }
  if (texts.length === 0 && images.length === 0 && result.structuredContent !== undefined)
    texts.push(JSON.stringify(result.structuredContent))
  const text = redact(texts.join('\n')).toWellFormed()
  return {
    text: text === '' && images.length === 0 ? '(no output)' : bounded(text),
    is_error: result.isError === true,
    ...(images.length > 0 ? { images } : {}),
  }
}

/** A picture, or in words why it is none. */
function pictureIn(base64: string): Picture | string {
  const bytes = Buffer.from(base64, 'base64')
  const media_type = pictureType(bytes)
  if (!media_type) return 'it is of no kind that can be shown'
  try {
    pictureOf(bytes, media_type, 'It')
    return { media_type, bytes }
  } catch (error) {
    return wordsOf(error)
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
