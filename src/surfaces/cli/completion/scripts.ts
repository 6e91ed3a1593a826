/**
 * Completion scripts. They need only the shell: neither the bash-completion package nor an initialized zsh completion
 * system.
 */

/** Asks the shell to complete file names itself. */
export const FILES = ':files';

const BASH = String.raw`# Completions of NAME for bash: source <(NAME completion bash)
_NAME_complete() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [ "$line" = '${FILES}' ] || COMPREPLY+=("$(printf '%q' "\${line%%$'\t'*}")")
  done < <("$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME_complete NAME`;

const ZSH = String.raw`#compdef NAME
# Completions of NAME for zsh: source <(NAME completion zsh)
_NAME() {
  local line
  local -a found
  while IFS= read -r line; do
    [[ "$line" == '${FILES}' ]] || found+=("\${\${line%%$'\t'*}//:/\\:}:\${line#*$'\t'}")
  done < <("$words[1]" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe NAME found; else _files; fi
}
if [[ "$funcstack[1]" == _NAME ]]; then
  _NAME
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i; }
  compdef _NAME NAME
fi`;

const FISH = String.raw`# Completions of NAME for fish: NAME completion fish | source
function __NAME_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l found (NAME complete -- $words[2..-1] "$current" 2>/dev/null)
  if test "$found" = '${FILES}'
    __fish_complete_path "$current"
  else
    printf '%s\n' $found
  end
end
complete -c NAME -f -a '(__NAME_complete)'`;

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH };
export type Shell = keyof typeof SCRIPTS;
export const SHELLS = ['bash', 'zsh', 'fish'] as const satisfies readonly Shell[];

/** The completion script of a shell for a program. */
export function completionScript(shell: Shell, program: string): string {
  return SCRIPTS[shell].replaceAll('NAME', program).replaceAll('\\${', '${');
}
