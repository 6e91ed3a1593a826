/** How the `svcd` command ends when it fails: with the exit codes of `svc`. */
import { type Command, CommanderError } from 'commander';
import { EXIT, SvcError } from '../foundation/errors.ts';

/** Makes wrong usage an error of the program, here and in every command below; commander would exit with 1. */
export function throwUsageErrors(command: Command): Command {
  command.exitOverride();
  command.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'svcd: ')) });
  for (const one of command.commands) throwUsageErrors(one);
  return command;
}

/** The exit code for what a command line threw; asking for the help or the version is no failure. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
  return error instanceof SvcError ? error.exit : EXIT.failed;
}
