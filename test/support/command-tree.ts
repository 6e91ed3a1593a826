/** The commands of a program, for tests that iterate over them without running any. */
import type { Command } from 'commander';
import { BUILT_IN } from '../../tools/command-tree.ts';

export interface NamedCommand {
  /** The words after `svc` or `svcd`, such as `tunnel open`. */
  readonly name: string;
  readonly command: Command;
}

/** Every command of a program, including groups. */
export function commandsOf(program: Command, prefix = ''): NamedCommand[] {
  return program.commands
    .filter((command) => !BUILT_IN.has(command.name()))
    .flatMap((command) => {
      const name = prefix === '' ? command.name() : `${prefix} ${command.name()}`;
      return [{ name, command }, ...commandsOf(command, name)];
    });
}
