/** Commands about this machine. */
import { OUT, SHELLS, type Command, type Run } from '../command.ts'

export const MACHINE = {
  doctor: {
    group: 'Machine',
    what: 'check the whole way, and say what to do',
    flags: {
      ...OUT,
      live: { type: 'boolean', what: 'also ask the model for one word (costs a little)' },
      workspace: {
        type: 'string',
        multiple: true,
        value: 'DIR',
        values: 'folder',
        what: 'also look at the config of this folder, which runs it; those that are served here are looked at anyway',
      },
    },
    more: 'Ends with 1 when something is wrong.\n--json: {"ok", "checks": [{"name", "state": "ok" | "warning" | "problem", "says", "todo"}]}.',
    load: (): Promise<Run> => import('../doctor.ts').then(({ doctor }) => doctor),
  },
  trust: {
    group: 'Machine',
    what: 'say that you have seen the config of a folder in which sessions work in place',
    args: [{ name: 'FOLDER', values: 'folder', optional: true }],
    flags: OUT,
    more: 'Runs the config once. From then on it counts, as it is, with the files that it imports.\n--json: {"folder", "files"}.',
    load: (): Promise<Run> => import('../trust.ts').then(({ trust }) => trust),
  },
  completion: {
    group: 'Machine',
    what: 'a script that completes baton commands',
    args: [{ name: 'SHELL', values: SHELLS }],
    flags: { json: { type: 'boolean', what: 'print JSON for programs' } },
    more: '  bash   eval "$(baton completion bash)"           in ~/.bashrc\n  zsh    eval "$(baton completion zsh)"            in ~/.zshrc, after compinit\n  fish   baton completion fish | source            in ~/.config/fish/config.fish',
    load: (): Promise<Run> => import('../completion.ts').then(({ completion }) => completion),
  },
} as const satisfies Record<string, Command>
