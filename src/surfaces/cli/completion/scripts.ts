/**
 * Completion scripts. They need only the shell: neither the bash-completion package nor an initialized zsh completion
 * system.
 */

/** Asks the shell to complete file names itself. */
export const FILES = ':files';

/** Precedes the reason why there is no candidate. */
export const NOTHING = ':nothing';

const BASH = String.raw`# Completions of NAME for bash: source <(NAME completion bash)
_NAME_complete() {
  local line
  COMPREPLY=()
  compopt +o default 2>/dev/null
  while IFS= read -r line; do
    case "$line" in
      '${FILES}') compopt -o default 2>/dev/null || : ;;
      '${NOTHING}'*) [ -z "$PS1" ] || printf '\n%s\n%s' "\${line#*$'\t'}" "> $COMP_LINE" >&2 ;;
      *) COMPREPLY+=("$(printf '%q' "\${line%%$'\t'*}")") ;;
    esac
  done < <("$1" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME_complete NAME`;

const ZSH = String.raw`#compdef NAME
# Completions of NAME for zsh: source <(NAME completion zsh)
_NAME() {
  local line
  local -a found
  local files=0
  while IFS= read -r line; do
    [[ "$line" == '${FILES}' ]] && files=1
    [[ "$line" == '${NOTHING}'* ]] && _message -r -- "\${line#*$'\t'}"
    [[ "$line" == ('${FILES}'|'${NOTHING}'*) ]] || found+=("\${\${line%%$'\t'*}//:/\\:}:\${line#*$'\t'}")
  done < <("$words[1]" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe NAME found; elif (( files )); then _files; fi
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
  else if not string match -q '${NOTHING}*' -- "$found"
    printf '%s\n' $found
  end
end
complete -c NAME -f -a '(__NAME_complete)'`;

/** Windows PowerShell and PowerShell before 7.3 drop empty arguments of programs. */
const POWERSHELL = String.raw`# Completions of NAME for PowerShell: NAME completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName NAME -ScriptBlock {
  param($word, $line, $position)
  $legacy = $PSVersionTable.PSVersion -lt [version]'7.3' -or $PSNativeCommandArgumentPassing -eq 'Legacy'
  $words = @($line.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.StartOffset -lt $position } |
    ForEach-Object { if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { "$_" } })
  if ($word -eq '') { $words += if ($legacy) { '""' } else { '' } }
  NAME complete -- @words 2>$null | ForEach-Object {
    $found, $about = $_ -split [char]9, 2
    if ($found -in '${FILES}', '${NOTHING}') { return }
    $text = if ($found -match '[^\w:./@%+=-]') { "'" + $found.Replace("'", "''") + "'" } else { $found }
    $tip = if ($about) { $about } else { $found }
    [System.Management.Automation.CompletionResult]::new($text, $found, 'ParameterValue', $tip)
  }
}`;

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH, powershell: POWERSHELL };
export type Shell = keyof typeof SCRIPTS;
export const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const satisfies readonly Shell[];

/** The completion script of a shell for a program. */
export function completionScript(shell: Shell, program: string): string {
  return SCRIPTS[shell].replaceAll('NAME', program).replaceAll('\\${', '${');
}
