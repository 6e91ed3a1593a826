/** `completion`: completion scripts for bash, zsh, fish and PowerShell. */
import { Argument, type Command } from 'commander';
import { exampleHelp } from '../command-group.ts';
import type { Candidate, CursorPlace } from '../completion/complete.ts';
import { completionScript, SHELLS, type Shell } from '../completion/scripts.ts';

interface Completing {
  readonly print: (text: string) => void;
  /** Candidates for a place other than commands and options. */
  readonly known?: (place: CursorPlace) => Promise<readonly Candidate[]>;
}

/** Adds `completion <shell>` and the hidden command that the scripts call. */
export function completionCommands(program: Command, { print, known = async () => [] }: Completing): void {
  const name = program.name();
  program
    .command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText('after', exampleHelp(`source <(${name} completion bash)`, `${name} completion fish | source`))
    .action((shell: Shell) => print(`${completionScript(shell, name)}\n`));
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      // Loaded only for completion.
      const { completions } = await import('../completion/complete.ts');
      print((await completions(program, words, known)).map((line) => `${line}\n`).join(''));
    });
}
