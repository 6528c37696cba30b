/** `baton trust`: the person has seen a config, which from then on counts as it is. */
import { Trust } from '../config/trust.ts'
import { dataFolder, parseFor, servedFolder } from './args.ts'
import { print } from './output.ts'

export async function trust(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('trust', args)
  const folder = await servedFolder(positionals[0] ?? '.')
  const files = await new Trust(dataFolder(values.data)).confirm(folder)
  const told =
    files.length === 0
      ? `${folder} has no config: there is nothing to trust.`
      : `Trusted as they are:\n  ${files.join('\n  ')}`
  print(values.json, { folder, files }, told)
  return 0
}
