/** The tools that every session has. */
import { bash } from './bash.ts'
import { edit } from './edit.ts'
import { fetch } from './fetch.ts'
import { glob } from './glob.ts'
import { grep } from './grep.ts'
import { job } from './job.ts'
import { read } from './read.ts'
import type { Tool } from './tool.ts'
import { write } from './write.ts'

/** In the order in which the model is told of them; the order is part of the prompt cache's key. */
export function builtinTools(): Tool[] {
  return [bash, job, read, write, edit, glob, grep, fetch]
}
