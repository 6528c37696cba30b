/**
 * What `baton completion SHELL` prints. Each script hands the words so far to `baton __complete SHELL`, and what comes back to its shell.
 * Descriptions are for shells that show them; bash does not.
 */
import type { SHELLS } from './table.ts'

/**
 * bash: breaks words at `=` and `:`, so they are put together again for `baton`, and what stands before the last break is taken off what
 * comes back. No `mapfile` and no other word that the bash of macOS (3.2) lacks; there names with spaces end without a slash.
 */
const BASH = `_baton() {
  local line cut i last=0 raw="\${COMP_WORDS[COMP_CWORD]}" program="\${COMP_WORDS[0]}"
  local words=()
  case "$program" in '~/'*) program="$HOME/\${program:2}" ;; esac
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if ((last > 0)) && [[ "\${COMP_WORDS[i]}" == [=:]* || "\${COMP_WORDS[i-1]}" == *[=:] ]]; then
      words[last-1]+="\${COMP_WORDS[i]}"
    else
      words[last++]="\${COMP_WORDS[i]}"
    fi
  done
  case "$raw" in [=:]*) raw="" ;; esac
  cut="\${words[last-1]}"
  cut="\${cut%"$raw"}"
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :file | :folder)
        compopt -o filenames 2>/dev/null
        local kind=-f
        [[ $line == :folder ]] && kind=-d
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$raw")
        ;;
      *)
        line="\${line%%$'\\t'*}"
        COMPREPLY+=("$(printf '%q' "\${line#"$cut"}")")
        ;;
    esac
  done < <("$program" __complete bash "\${words[@]}" 2>/dev/null)
}
complete -F _baton baton
`

/** zsh: `(Q)` takes the quotes off, `~` finds the home folder; files behind `--flag=` begin after the sign. */
const ZSH = `_baton() {
  local line value about program=\${~\${(Q)words[1]}}
  local -a found
  while IFS= read -r line; do
    case "$line" in
      :file | :folder)
        [[ "$PREFIX" == --*=* ]] && compset -P '--*='
        if [[ "$line" == :file ]]; then _files; else _files -/; fi
        return
        ;;
    esac
    value="\${line%%$'\\t'*}"
    about="\${line#*$'\\t'}"
    if [[ "$about" == "$line" ]]; then found+=("\${value//:/\\\\:}")
    else found+=("\${value//:/\\\\:}:$about"); fi
  done < <("$program" __complete zsh "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  _describe -V 'baton' found
}
compdef _baton baton
`

/** fish: takes the quotes off itself, but for the word that is typed. `-k`: in our order. */
const FISH = `function __baton
  set -l words (commandline -opc)
  set -l program (string replace -r '^~/' $HOME/ -- $words[1])
  for line in ($program __complete fish $words[2..-1] (commandline -ct) 2>/dev/null)
    switch $line
      case :file
        __fish_complete_path (commandline -ct)
      case :folder
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -k -c baton -f -a '(__baton)'
`

export const SCRIPTS: Record<(typeof SHELLS)[number], string> = { bash: BASH, zsh: ZSH, fish: FISH }
