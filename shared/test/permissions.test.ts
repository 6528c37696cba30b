import { describe, expect, it, test } from 'vitest'
import type { Rule } from '../src/journal.ts'
import { permissionOf, ruleFor, rulingOf, ruleWords, type Call } from '../src/permissions.ts'
import { commandsOf } from '../src/shell.ts'

const bash = (command: string): Call => ({ name: 'bash', access: 'run', input: { command } })
const edit = (path: string): Call => ({ name: 'edit', access: 'edit', input: { path } })
const read: Call = { name: 'read', access: 'read', input: { path: 'a' } }
const allow = (tool: string, prefix?: string): Rule => ({
  tool,
  action: 'allow',
  ...(prefix ? { prefix } : {}),
})
const deny = (tool: string, prefix?: string): Rule => ({ ...allow(tool, prefix), action: 'deny' })

describe('B1: the mode decides where no rule does', () => {
  test.each([
    ['plan', 'allow', 'deny', 'deny'],
    ['ask', 'allow', 'ask', 'ask'],
    ['edit', 'allow', 'allow', 'ask'],
    ['full', 'allow', 'allow', 'allow'],
  ] as const)('%s: read %s, edit %s, run %s', (mode, looks, edits, runs) => {
    expect(permissionOf(read, mode, [])).toBe(looks)
    expect(permissionOf(edit('a'), mode, [])).toBe(edits)
    expect(permissionOf(bash('ls'), mode, [])).toBe(runs)
  })

  it('and in plan mode no rule allows more', () => {
    expect(permissionOf(bash('ls'), 'plan', [allow('bash')])).toBe('deny')
  })
})

describe('B2: deny counts before ask, ask before allow', () => {
  it('whatever the mode and the order of the rules', () => {
    const rules: Rule[] = [
      allow('bash'),
      { tool: 'bash', prefix: 'git push', action: 'ask' },
      deny('bash', 'rm'),
    ]
    expect(permissionOf(bash('git push origin'), 'full', rules)).toBe('ask')
    expect(permissionOf(bash('rm -rf x'), 'full', rules)).toBe('deny')
    expect(permissionOf(bash('git status'), 'ask', rules)).toBe('allow')
  })

  it('and the rule that restricts is named; where the mode does, none is', () => {
    const rules = [allow('bash'), deny('edit'), deny('bash', 'rm'), deny('bash', 'rm -rf')]
    expect(rulingOf(bash('cd x && rm -rf y'), 'full', rules)).toEqual({ permission: 'deny', by: rules[2] })
    expect(rulingOf(bash('$X -rf'), 'full', rules)).toEqual({ permission: 'ask', by: rules[2] })
    expect(rulingOf(bash('rm x'), 'plan', rules)).toEqual({ permission: 'deny' })
    expect(rules.map(ruleWords)).toEqual(['allow bash', 'deny edit', 'deny bash: rm', 'deny bash: rm -rf'])
  })
})

describe('B3: a prefix allows whole words of plain commands only', () => {
  const rules = [allow('bash', 'npm test'), allow('bash', 'git status')]
  test.each([
    'npm test',
    'npm  test -- --run',
    "npm 'test'",
    'npm test && git status',
    'npm test | git status',
  ])('allowed: %s', (line) => {
    expect(permissionOf(bash(line), 'ask', rules)).toBe('allow')
  })
  test.each([
    'npm testify',
    'npm',
    'npm test; rm -rf /',
    'npm test && rm x',
    'npm test & rm x',
    'npm test\nrm x',
    'npm test $(rm x)',
    'npm test `rm x`',
    'npm test "$(rm x)"',
    'npm test > /etc/passwd',
    'npm test < <(rm x)',
    'PATH=/tmp/evil npm test',
    '(npm test)',
    '{ npm test; }',
    '! npm test',
    'if npm test; then rm x; fi',
    'npm test "unclosed',
    "npm test 'unclosed",
    'npm test || eval rm',
    'npm te\\',
    '',
    '# npm test',
  ])('asked for: %s', (line) => {
    expect(permissionOf(bash(line), 'ask', rules)).toBe('ask')
  })
  it('a command that runs its arguments is not plain, unless every call of the tool is allowed', () => {
    expect(permissionOf(bash('xargs npm test'), 'ask', [allow('bash', 'xargs npm test')])).toBe('ask')
    expect(permissionOf(bash('xargs npm test'), 'ask', [allow('bash')])).toBe('allow')
  })
})

describe('B3: what denies counts in doubt', () => {
  const rules = [deny('bash', 'git push')]
  test.each([
    'git push',
    'ls && git push',
    'X=1 git push',
    '(git push)',
    'echo $(git push)',
    'echo "$(git push)"',
    'echo "`git push`"',
    'eval "git push"',
    "eval 'git  push'",
    "sh -c 'git\tpush'",
    'git \\\npush',
    'git -C . push',
    'git --no-pager push',
    '/usr/bin/git push',
    './git push',
    'setsid git push',
    'env -- git push',
    'sudo -u x git push',
    'timeout 5 git push',
    'git >/dev/null push',
    'git 2>&1 push',
    '>/dev/null git push',
    'for i in 1; do git push; done',
    'if true; then git push; fi',
    'f() { git push; }; f',
    'case x in x) git push;; esac',
    'coproc git push',
    'command -p git push',
    '[ 1 ] && git push',
    '! git push',
  ])('denied: %s', (line) => {
    expect(permissionOf(bash(line), 'full', rules)).toBe('deny')
  })
  test.each([
    'G=git; $G push',
    '$(echo git) push',
    "$'git' push",
    'gi{t,} push',
    'g* push',
    'git "$x"',
    'git ${x}push',
    'bash <<< "git push"',
    'echo git push | sh',
    'xargs git <<< push',
    'echo "unclosed',
  ])('asked for, since nobody can tell: %s', (line) => {
    expect(permissionOf(bash(line), 'full', rules)).toBe('ask')
  })
  test.each([
    'git pull',
    "echo 'git push'",
    'git pushx',
    'git commit -m x',
    'git log > push',
    'echo $HOME',
    'for f in *.ts; do wc -l $f; done',
    'sudo git status',
    'npm test 2>&1 | tail -5',
    'cat <<EOF\nhello\nEOF',
  ])('not denied: %s', (line) => {
    expect(permissionOf(bash(line), 'full', rules)).toBe('allow')
  })
})

describe('B4: for tools with a path, a prefix is a file or folder', () => {
  it('in whole names, and never by way of ..', () => {
    const rules = [allow('edit', 'src')]
    expect(permissionOf(edit('src/a.ts'), 'ask', rules)).toBe('allow')
    expect(permissionOf(edit('./src/a.ts'), 'ask', rules)).toBe('allow')
    expect(permissionOf(edit('srcs/a.ts'), 'ask', rules)).toBe('ask')
    expect(permissionOf(edit('src/../b.ts'), 'ask', rules)).toBe('ask')
  })
  test.each([
    'lib/../secret/x',
    'secret//a',
    './/secret/a',
    'x/./../secret/a',
    'SECRET/a',
    '/home/me/w/secret/a',
    '../w/a',
  ])('denied, in whatever form: %s', (path) => {
    expect(permissionOf(edit(path), 'full', [deny('edit', 'secret')])).toBe('deny')
  })
  test.each(['secrets/a', 'a/secret.txt', 'lib/b'])('not denied: %s', (path) => {
    expect(permissionOf(edit(path), 'full', [deny('edit', 'secret')])).toBe('allow')
  })
  it('and a tool that looks everywhere looks there, too', () => {
    const grep = (input: Call['input']): Call => ({ name: 'grep', access: 'read', input })
    const rules = [deny('grep', 'a/secret')]
    expect(permissionOf(grep({}), 'full', rules)).toBe('deny')
    expect(permissionOf(grep({ path: 'a' }), 'full', rules)).toBe('deny')
    expect(permissionOf(grep({ path: 'b' }), 'full', rules)).toBe('allow')
  })
})

describe('B4: for addresses, a prefix is a host or a folder of one', () => {
  const get = (url: string): Call => ({ name: 'fetch', access: 'run', input: { url } })
  const rules = [allow('fetch', 'https://h.example/public')]
  it('allowed as the address is asked for, not as it is written', () => {
    expect(permissionOf(get('https://h.example/public/a'), 'ask', rules)).toBe('allow')
    expect(permissionOf(get('https://h.example/public/%2e%2e/secret'), 'ask', rules)).toBe('ask')
    expect(permissionOf(get('https://h.example/public/.\t./secret'), 'ask', rules)).toBe('ask')
    expect(permissionOf(get('https://h.example/publicity'), 'ask', rules)).toBe('ask')
    expect(permissionOf(get('https://h.example@evil.example/public'), 'ask', rules)).toBe('ask')
  })
  test.each([
    'HTTPS://EVIL.example/x',
    'https://evil.example?x',
    'https://evil.example:443/x',
    'http://evil.example:8080',
    'no address',
  ])('denied: %s', (url) => {
    expect(permissionOf(get(url), 'full', [deny('fetch', 'https://evil.example')])).toBe('deny')
  })
  it('another host is not', () => {
    expect(permissionOf(get('https://good.example/'), 'full', [deny('fetch', 'https://evil.example')])).toBe(
      'allow',
    )
  })
})

describe('the rule that "always" offers', () => {
  test.each([
    ['npm test -- a', 'npm test'],
    ['git status --short', 'git status'],
    ['git --version', 'git --version'],
    ['git -C x status', 'git -C x status'],
    ['python3 x.py', 'python3 x.py'],
    ['rm build/x', 'rm build/x'],
    ['./check.sh', './check.sh'],
    ['ls -la', 'ls'],
  ])('%s → %s', (line, prefix) => {
    const rule = ruleFor(bash(line))
    expect(rule).toEqual({ tool: 'bash', prefix, action: 'allow' })
    expect(permissionOf(bash(line), 'ask', rule ? [rule] : [])).toBe('allow')
  })
  test.each(['a && b', 'echo $(x)', 'sudo x', 'python3', 'git', 'awk "a b" f', ''])('none for %s', (line) => {
    expect(ruleFor(bash(line))).toBeUndefined()
  })
  it('for another tool is the tool', () => {
    expect(ruleFor(edit('a'))).toEqual({ tool: 'edit', action: 'allow' })
  })
})

it('reads words as a shell does', () => {
  const words = (line: string): string[][] =>
    commandsOf(line).commands.map((command) => command.words.map(({ text }) => text))
  expect(words(`a 'b c' "d \\" e" f\\ g`)).toEqual([['a', 'b c', 'd " e', 'f g']])
  expect(words('a;b&&c||d|e&f\ng # h')).toEqual([['a'], ['b'], ['c'], ['d'], ['e'], ['f'], ['g']])
})
