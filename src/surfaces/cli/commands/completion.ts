/** `completion`: scripts that complete the commands of a program in bash, zsh and fish. */
import { Argument, type Command } from 'commander';
import type { Candidate, TypingPlace } from '../completion/place.ts';
import { completionScript, SHELLS, type Shell } from '../completion/scripts.ts';
import { examples } from '../examples.ts';

interface Completing {
  readonly print: (text: string) => void;
  /** What could stand at a place beside commands and options; called with the command that asks. */
  readonly known?: (place: TypingPlace) => Promise<readonly Candidate[]>;
}

/** Adds `completion <shell>` and the hidden command that the scripts call. */
export function completionCommands(program: Command, { print, known = async () => [] }: Completing): void {
  const name = program.name();
  program
    .command('completion')
    .description('print the completions of a shell')
    .addArgument(new Argument('<shell>', 'where they are to work').choices(SHELLS))
    .addHelpText('after', examples(`source <(${name} completion bash)`, `${name} completion fish | source`))
    .action((shell: Shell) => print(`${completionScript(shell, name)}\n`));
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      // Only who completes pays for it.
      const { completions } = await import('../completion/complete.ts');
      print((await completions(program, words, known)).map((line) => `${line}\n`).join(''));
    });
}
