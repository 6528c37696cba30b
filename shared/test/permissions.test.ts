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

  it('H18: and it is told whether rules allowed a call, and which', () => {
    const rules = [allow('bash', 'git status'), allow('bash', 'ls'), allow('edit', 'src')]
    expect(rulingOf(bash('ls -l && git status && ls'), 'ask', rules).through).toEqual([rules[1], rules[0]])
    expect(rulingOf(edit('src/a.ts'), 'edit', rules).through).toEqual([rules[2]])
    expect(rulingOf(edit('docs/a.md'), 'edit', rules)).toEqual({ permission: 'allow' })
    expect(rulingOf(bash('ls && rm a'), 'ask', rules)).toEqual({ permission: 'ask' })
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
    "echo 'git push'",
    'git pull',
    'npm pushx',
    'git commit -m "then git push"',
    'git -c user.name=x -c user.email=x@y commit -m x',
    'git config user.name x',
    'git switch -c push-it',
    'git clean -fdx',
    "git commit -qF - <<'EOF'\ndon't git push yet: $(x `\nEOF",
    'cat > NOTES <<EOF\nfirst x\ngit push\nEOF',
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

describe('B3: what denies finds a command in whatever way a shell, git or another program comes to run it', () => {
  test.each([
    ['git push', "git commit -qF - <<'EOF'\ndon't\nEOF\ngit push\ncat <<'EOF'\ncan't\nEOF", 'deny'],
    ['git push', 'out="$(git -C "$DIR" push)"', 'ask'],
    ['git push', 'echo "$(git "push")"', 'deny'],
    ['git push', 'git &>/dev/null push', 'deny'],
    ['git push', 'git -c alias.p=push p', 'ask'],
    ['git push', 'git p', 'ask'],
    ['git push', "sh -c 'git${IFS}push'", 'ask'],
    ['git push', "PAGER='git push' less x", 'ask'],
    ['rm', "echo $'\\''; rm -rf x; echo $'\\'' '#'  '", 'deny'],
    ['rm', "env -S'rm -rf x'", 'deny'],
    ['rm', "sh -c 'id;rm<x'", 'deny'],
    ['rm', 'npx rm -rf x', 'deny'],
    ['rm', 'time -p rm x', 'deny'],
    ['rm', 'function f { rm x; }; f', 'deny'],
    ['rm', "cat <<EOF\nit's $(rm -rf x)\nthat's\nEOF", 'deny'],
    ['rm', 'mapfile -C rm -c 1 < x', 'deny'],
    ...['pkexec', 'setpriv --reuid 0', 'runuser -u x --', 'fakeroot', 'prlimit --nproc=1'].map(
      (runner): [string, string, string] => ['rm', `${runner} rm x`, 'deny'],
    ),
    ...['npm exec --', 'pnpm exec', 'uv run', 'docker run -v /:/h alpine', 'some-new-runner', 'yarn dlx'].map(
      (runner): [string, string, string] => ['rm', `${runner} rm x`, 'ask'],
    ),
    ['rm', "git -c core.pager='rm -rf x' log", 'ask'],
    ['rm', "git rebase -x 'rm -rf x' HEAD~1", 'ask'],
    ['rm', 'git submodule foreach "rm -rf x"', 'ask'],
    ['rm', 'git config alias.p "!rm x"', 'ask'],
    ['rm', `awk 'BEGIN{system("rm x")}'`, 'ask'],
    ['rm', 'find . -delete', 'ask'],
    ['rm', 'make SHELL=/bin/rm', 'ask'],
    ['rm', 'tar --to-command=rm -xf a.tar', 'ask'],
    ['rm', 'xargs env < list', 'ask'],
    ['rm', 'xargs -I{} {} x < list', 'ask'],
    ['rm', "xargs -I% sh -c '%' < list", 'ask'],
    ['rm', 'find . -exec sh -c {} ";"', 'ask'],
    ['rm', 'find . -exec {} ";"', 'ask'],
    ['rm', 'find . -exec rm {} ";"', 'deny'],
    ['rm', 'xargs -I {} rm {} < list', 'deny'],
    ['rm', 'git fetch --upl=./rm x', 'ask'],
    ['rm', 'echo "${x:-$(rm x)}"', 'deny'],
    ['rm', 'x=$((1<<3)); rm x', 'deny'],
    ['rm', 'cat <<EOF', 'ask'],
    ['rm', 'a[1<<3]=2; rm x', 'deny'],
    ['rm', '((1<<b))\nrm x\nb))', 'ask'],
  ])('%s: %s → %s', (prefix, line, permission) => {
    expect(permissionOf(bash(line), 'full', [deny('bash', prefix)])).toBe(permission)
  })
  test.each(['$(', '${a:-', '`', '"$(', 'sudo ', '<<E ', "eval '"])(
    'or asks: %s, again and again',
    (part) => {
      expect(permissionOf(bash(part.repeat(20_000)), 'full', [deny('bash', 'rm')])).toBe('ask')
    },
  )
  test.each([
    'find . -name "*.rm"',
    'find . -name rm',
    'mv rm x',
    'find . -name x -exec cat {} ";"',
    'ls | xargs -I {} cp {} backup/{}',
    'command -v rm',
    'git rm x',
    'docker run --rm alpine true',
    'for f in "${all[@]}"; do echo "${f%.*}" >> "$LOG"; done',
    'npm test -- --run "$FILE"',
    'x=$((x + 1)); echo "$x ${#x}"',
    'sed -n 1,5p src/rm.ts',
    "jq '.rm' package.json",
    'case "$1" in\n -h|*.md) echo a;; *) echo b;; esac',
    '[ -f x ] && cat <<EOF\nx\nEOF',
  ])('and of rm nothing in: %s', (line) => {
    expect(permissionOf(bash(line), 'full', [deny('bash', 'rm')])).toBe('allow')
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
  it('denied, however its letters are put together', () => {
    expect(permissionOf(edit('caf\u0065\u0301/a'), 'full', [deny('edit', 'caf\u00e9')])).toBe('deny')
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
    'https://evil.example./x',
    'https://EVIL.example.:8443/x',
    '  https://evil.example',
    'https://e%76il.example/x',
    'https://me@evil.example/x',
  ])('denied: %s', (url) => {
    expect(permissionOf(get(url), 'full', [deny('fetch', 'https://evil.example')])).toBe('deny')
  })
  test.each([
    'https://h.example/admin',
    'https://h.example/%61dmin/x',
    'https://h.example/%2561dmin',
    'https://h.example//admin',
    'https://h.example/x/..%2fadmin',
    'https://h.example/Admin',
    'https://h.example/admin;v=1/x',
    'https://h.example././admin',
    'https://h.example/%ff/../admin',
  ])('denied, in whatever form: %s', (url) => {
    for (const prefix of [
      'https://h.example/admin',
      'h.example/admin',
      'h.example:8080/%61dmin',
      'H.example.',
    ])
      expect(permissionOf(get(url), 'full', [deny('fetch', prefix)])).toBe('deny')
  })
  it('a host stands for any of its ports, unless one is named', () => {
    const under = (url: string, prefix: string) => permissionOf(get(url), 'ask', [allow('fetch', prefix)])
    expect(under('https://h.example:8443/x', 'h.example')).toBe('allow')
    expect(under('http://h.example:8443/x', 'h.example:8443')).toBe('allow')
    expect(under('http://h.example/x', 'h.example:8443')).toBe('ask')
    expect(under('http://h.example/x', 'https://h.example')).toBe('ask')
    expect(under('https://h.example./x', 'h.example')).toBe('ask')
    expect(under('https://h.example/%2561', 'h.example')).toBe('ask')
    expect(under('https://h.example/admins', 'h.example/admin')).toBe('ask')
  })
  it('another host is not', () => {
    expect(permissionOf(get('https://good.example/'), 'full', [deny('fetch', 'https://evil.example')])).toBe(
      'allow',
    )
  })
})

it('B5: a rule for all of git does not cover settings on the line', () => {
  const rules = [allow('bash', 'git')]
  expect(permissionOf(bash('git push origin x'), 'ask', rules)).toBe('allow')
  expect(permissionOf(bash('git -C a -c alias.p=!evil p'), 'ask', rules)).toBe('ask')
  expect(permissionOf(bash('git --config-env=alias.p=X p'), 'ask', rules)).toBe('ask')
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
    ['uv run pytest', 'uv run pytest'],
    ['docker run alpine true', 'docker run alpine true'],
    ['kubectl exec a ls', 'kubectl exec a ls'],
    ['npm run test', 'npm run test'],
    ['npm exec tsc', 'npm exec tsc'],
    ['go run ./cmd/x', 'go run ./cmd/x'],
    ['git config user.name', 'git config user.name'],
    ['pip install x', 'pip install x'],
    ['git push origin x', 'git push origin x'],
    ['git diff --output=x a', 'git diff --output=x'],
    ['npx tsc --noEmit', 'npx tsc'],
    ['rg foo', 'rg foo'],
    ['uniq a', 'uniq a'],
    ['tree src', 'tree src'],
    ['date -u', 'date -u'],
  ])('%s → %s', (line, prefix) => {
    const rule = ruleFor(bash(line))
    expect(rule).toEqual({ tool: 'bash', prefix, action: 'allow' })
    expect(permissionOf(bash(line), 'ask', rule ? [rule] : [])).toBe('allow')
  })
  test.each(['a && b', 'echo $(x)', 'sudo x', 'python3', 'git', 'awk "a b" f', ''])('none for %s', (line) => {
    expect(ruleFor(bash(line))).toBeUndefined()
  })
  test.each([
    ['uv run pytest', 'uv run rm -rf /home'],
    ['docker run alpine true', 'docker run -v /:/h alpine true'],
    ['pip install x', 'pip install x y'],
    ['git config user.name', 'git config user.name x'],
    ['git diff', 'git diff --output=/home/x/.bashrc'],
    ['git diff', 'git diff --ou=x'],
    ['git log -p', 'git log -p --ext-diff'],
    ['git grep x', 'git grep -O./evil x'],
    ['git fetch', 'git fetch --upload-pack=evil x'],
    ['git branch', 'git branch -D main'],
    ['git push', 'git push --force'],
    ['go test', 'go test -exec ./evil'],
    ['npx tsc', 'npx tsc --outDir /'],
    ['npm test', 'npm test --script-shell=./evil'],
    ['rg x', 'rg x --pre ./evil.sh'],
    ['rg x', 'rg --pre ./evil.sh x'],
    ['tree src', 'tree -o src/a.ts'],
    ['date -u', 'date -s x'],
    ['make test', 'make test SHELL=./evil'],
    ['git --version', 'git -c alias.p=!evil p'],
    ['rm build/x', 'rm build/x src'],
    ['uniq a', 'uniq a src/index.ts'],
  ])('B5: %s does not cover %s', (shown, other) => {
    const rule = ruleFor(bash(shown)) ?? allow('bash', shown)
    expect(permissionOf(bash(shown), 'ask', [rule])).toBe('allow')
    expect(permissionOf(bash(other), 'ask', [rule])).toBe('ask')
  })
  test.each([
    ['npm test', 'npm test -- --run a.test.ts'],
    ['git log', 'git log --oneline --pretty=short --format=%h -5'],
    ['git commit', 'git commit -q -m x'],
    ['npm run test', 'npm run test -- -t x'],
    ['cargo test', 'cargo test --release x'],
    ['go test', 'go test -count=1 -v ./...'],
    ['grep x', 'grep -of p x'],
    ['tail x', 'tail -f x'],
  ])('B5: %s covers %s', (shown, other) => {
    const rule = ruleFor(bash(shown)) ?? allow('bash', shown)
    expect(permissionOf(bash(other), 'ask', [rule])).toBe('allow')
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
