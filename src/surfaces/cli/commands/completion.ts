/** `svc completion`: scripts that complete commands in bash, zsh and fish. */
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';
import { examples } from '../examples.ts';

/** Adds `completion <shell>` and the hidden command that the scripts call. Last of all: it reads the others. */
export function completionCommands(program: Command): void {
  tab(program, { completionCommandName: 'completion' });
  program.commands
    .find((command) => command.name() === 'completion')
    ?.description('print the completions of a shell')
    .addHelpText('after', examples('source <(svc completion bash)', 'svc completion fish | source'));
}
