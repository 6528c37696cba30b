/**
 * Hides a command in nestings of shell, by seed, and lets bash say whether it ran: what ran was never to be taken for harmless. A seed
 * that failed is kept by name below.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { permissionOf, type Permission } from '@baton/shared/permissions.ts'

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
const doubled = (text: string): string => `"${text.replaceAll(/[\\"$`]/g, '\\$&')}"`
const back = (text: string): string => `\`${text.replaceAll(/[\\`$]/g, '\\$&')}\``

/** The forbidden command as people and models write it. */
const COMMANDS = [
  ...[
    'mark push',
    '"mark" push',
    "mark 'push'",
    'm\\ark pu""sh',
    'mark -C . push',
    'mark --quiet push',
    'mark \\\npush',
  ],
  ...[
    'mark >/dev/null push',
    '>/dev/null mark push',
    'mark 2>&1 push',
    'mark &>/dev/null push',
    'X=1 mark push',
  ],
  ...[
    'mark "$PUSH"',
    '$MARK push',
    '"$(echo mark)" push',
    "$'mark' push",
    'mark $PUSH',
    'env mark push',
    "env -S'mark push'",
  ],
  ...[
    'command mark push',
    'time -p mark push',
    'awk \'BEGIN{system("mark push")}\'',
    'git -c alias.p="!mark push" p',
  ],
  ...[
    'echo push | xargs mark',
    'echo mark push | sh',
    "M='mark push' && $M",
    "timeout 9 sh -c 'mark push'",
    'exec mark push',
  ],
  ...[
    "mapfile -t -C 'mark push' -c 1 <<< x",
    "trap 'mark push' EXIT",
    'find . -maxdepth 0 -exec mark push ";"',
  ],
  ...[
    "sh -c 'mark${IFS}push'",
    "sh -c ':;mark>/dev/null push'",
    'nohup nice mark push',
    "script -qc 'mark push' /dev/null",
  ],
]

/** Each runs what it is given, in bash. `id`: a name that nothing else in the line has. */
const NESTINGS: ((inner: string, id: string) => string)[] = [
  (inner) => `:; ${inner}`,
  (inner) => `true && ${inner}`,
  (inner) => `${inner} || :`,
  (inner) => `( ${inner} )`,
  (inner) => `{ ${inner}\n}`,
  (inner) => `! { ${inner}\n}`,
  (inner) => `if true; then ${inner}\nfi`,
  (inner) => `if ${inner}\nthen :; fi`,
  (inner) => `for i in 1; do ${inner}\ndone`,
  (inner) => `while :; do ( ${inner}\n); break; done`,
  (inner) => `case x in y) ;; x) ${inner}\n;; esac`,
  (inner, id) => `${id}() { ${inner}\n}; ${id}`,
  (inner, id) => `function ${id} { ${inner}\n}; ${id}`,
  (inner) => `echo "$(${inner}\n)"`,
  (inner) => `echo $(${inner}\n)`,
  (inner) => `out="$(cd "$PWD" && ${inner}\n)"`,
  (inner) => `out=$(${inner}\n) && echo "$out"`,
  (inner) => `echo ${back(inner)}`,
  (inner) => `echo "\${NONE:-$(${inner}\n)}"`,
  (inner) => `echo \${NONE:-$(${inner}\n)}`,
  (inner) => `echo $(( 1 + $(${inner} >/dev/null 2>&1\n) 0 ))`,
  (inner) => `cat <(${inner}\n)`,
  (inner) => `cat <<< "$(${inner}\n)"`,
  (inner) => `[[ -n "$(${inner}\n)" ]]`,
  (inner) => `eval ${quoted(inner)}`,
  (inner) => `sh -c ${quoted(`bash -c ${quoted(inner)}`)}`,
  (inner) => `bash -c ${doubled(inner)}`,
  (inner) => `xargs bash -c ${quoted(inner)} <<< x`,
  (inner) => `# don't\n${inner}`,
  (inner) => `echo it\\'s; ${inner}`,
  (inner) => `echo $'it\\'s'; ${inner}\necho 'so'`,
  (inner) => `echo "it's"; ${inner}\necho "that's"`,
  (inner, id) => `cat <<'${id}'\ndon't "\n${id}\n${inner}\ncat <<${id}\ncan't\n${id}`,
  (inner, id) => (inner.includes('\n') ? inner : `cat <<${id} && ${inner}\nit's \\$(\n${id}`),
  (inner, id) => `cat <<-"${id}" | cat\n\tit's (\n\t${id}\n${inner}`,
  (inner, id) => `cat <<${id}\nit's $(${inner}\n)\n${id}`,
  (inner, id) => `bash <<'${id}'\n${inner}\n${id}`,
  (inner) => `echo $((1<<2)); ${inner}`,
  (inner) => `echo \${#PWD} \${PWD#*/} $# ; ${inner}`,
  (inner) => `a=(1 2) ; echo "\${a[@]}" ; ${inner}`,
]

function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function hidden(seed: number): string {
  const random = seeded(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  let line = pick(COMMANDS)
  for (let depth = Math.floor(random() * 4); depth >= 0; depth--) line = pick(NESTINGS)(line, `E${depth}Z`)
  return line
}

const BITS = [
  ...["'", '"', '$(', ')', '`', '\\', '\n', ';', '&&', '|', ' ', ' # ', '#', '(', '{ ', '}', '1', '!'],
  ...['<<E', '<<-E', "<<'E'", '<<\\E', '\nE\n', '\n\tE\n', '<<<', '<<', '<(', '>/dev/null ', '&>/dev/null '],
  ...[
    '${x:-',
    '${x#',
    '$((',
    '))',
    '((',
    "$'",
    "\\'",
    '$"',
    'a[',
    ']',
    '[[ ',
    ' ]]',
    'x=',
    '$x',
    '"$x"',
    '\\\n',
  ],
  ...[
    ':',
    'echo ',
    'cat ',
    'eval ',
    "don't",
    'case x in x) ',
    ';; esac',
    "''",
    "it\\'s",
    "$'it\\'s'",
    "$'\\''",
  ],
  ...["cat <<'E'\ndon't\nE\n", "cat <<E\nit's\nE\n", "cat <<-E\n\tso's\n\tE\n", "# can't\n"],
]

/** The command on a line of its own among bits of shell in any order: where quotes and bodies end is not where one expects it. */
function scattered(seed: number): string {
  const random = seeded(seed)
  const some = (): string =>
    Array.from({ length: 1 + random() * 5 }, () => BITS[Math.floor(random() * BITS.length)]).join('')
  return `${some()}\nmark push\n${some()}\nmark push\n${some()}`
}

/** Which of the lines run the command, each in a bash of its own. */
function ran(lines: readonly string[]): boolean[] {
  const folder = mkdtempSync(join(tmpdir(), 'baton-shell-'))
  try {
    mkdirSync(join(folder, 'bin'))
    mkdirSync(join(folder, 'work'))
    const program = join(folder, 'bin', 'mark')
    // As git does it: options, then the word that says what to do.
    const skip = 'while [ "${1#-}" != "${1-}" ]; do [ "$1" = -C ] && shift; shift; done'
    writeFileSync(program, `#!/bin/sh\n${skip}\n[ "\${1-}" = push ] && : >"$MARKED"\n`)
    chmodSync(program, 0o755)
    const script = lines.map(
      (line, i) => `MARKED='${join(folder, String(i))}' bash -c ${quoted(line)} </dev/null >/dev/null 2>&1`,
    )
    writeFileSync(join(folder, 'run.sh'), script.join('\n'))
    spawnSync('bash', [join(folder, 'run.sh')], {
      cwd: join(folder, 'work'),
      env: {
        PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`,
        HOME: folder,
        MARK: 'mark',
        PUSH: 'push',
      },
    })
    return lines.map((_line, i) => existsSync(join(folder, String(i))))
  } finally {
    // What runs in the background of a line may still leave its mark.
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

function permissionIn(line: string): Permission {
  const call = { name: 'bash', access: 'run' as const, input: { command: line } }
  return permissionOf(call, 'full', [{ tool: 'bash', prefix: 'mark push', action: 'deny' }])
}

/** Nothing but what these rules allow may run, so nothing else may be hidden. */
function isAllowedIn(line: string): boolean {
  const call = { name: 'bash', access: 'run' as const, input: { command: line } }
  const rules = ['echo', 'cat', ':', 'true', 'x', 'git'].map((prefix) => ({
    ...{ tool: 'bash', prefix, action: 'allow' as const },
  }))
  return permissionOf(call, 'ask', rules) === 'allow'
}

/** Lines that bash says run what is denied, and that are allowed all the same. */
function missed(
  make: (seed: number) => string,
  from: number,
  count: number,
): { ran: number; missed: string[] } {
  const lines = Array.from({ length: count }, (_, i) => make(from + i))
  const did = ran(lines)
  return {
    ran: did.filter(Boolean).length,
    missed: lines
      .filter((line, i) => did[i] && (permissionIn(line) === 'allow' || isAllowedIn(line)))
      .map((line) => JSON.stringify(line)),
  }
}

const SEED = Number(process.env['SEED'] ?? 1)
const COUNT = Number(process.env['COUNT'] ?? 150)

test('B3: a denied command is never allowed, in whatever nesting it runs', () => {
  const found = missed(hidden, SEED, COUNT)
  expect(found.missed).toEqual([])
  expect(found.ran).toBeGreaterThan(COUNT / 2)
})

test('B3: nor among bits of shell in any order, where bash runs it', () => {
  const found = missed(scattered, SEED, COUNT)
  expect(found.missed).toEqual([])
  expect(found.ran).toBeGreaterThan(COUNT / 10)
})

test('B3: a denied command in any of these nestings is at least asked for', () => {
  const lines = Array.from({ length: 3000 }, (_, i) => hidden(SEED + i))
  expect(lines.filter((line) => permissionIn(line) === 'allow')).toEqual([])
})
