import { anthropicModel } from './anthropic.ts'
import type { Model } from './model.ts'
import { rehearsalModel } from './rehearsal.ts'

export interface ModelEnvironment {
  apiKey?: string | undefined
  baseUrl?: string | undefined
  /** Used when a request names no model. */
  model?: string | undefined
}

/** The model service of this runner; without a key the rehearsal model. */
export function createModel({ apiKey, baseUrl, model }: ModelEnvironment): Model {
  const key = apiKey?.trim()
  if (!key) return rehearsalModel()
  return anthropicModel({ apiKey: key, ...(baseUrl ? { baseUrl } : {}), ...(model ? { model } : {}) })
}
