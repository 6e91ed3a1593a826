/** The commands of a program, for tests that go through all of them; nothing of them runs. */
import type { Command } from 'commander';
import { BUILT_IN } from '../../tools/command-tree.ts';

export interface NamedCommand {
  /** What is typed, without `svc` or `svcd`: `tunnel open`. */
  readonly name: string;
  readonly command: Command;
}

/** Every command below a program, groups of commands included. */
export function commandsOf(program: Command, prefix = ''): NamedCommand[] {
  return program.commands
    .filter((command) => !BUILT_IN.has(command.name()))
    .flatMap((command) => {
      const name = prefix === '' ? command.name() : `${prefix} ${command.name()}`;
      return [{ name, command }, ...commandsOf(command, name)];
    });
}
