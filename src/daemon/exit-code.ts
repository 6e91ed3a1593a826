/** Exit codes of the `svcd` command on failure, the same as for `svc`. */
import { type Command, CommanderError } from 'commander';
import { EXIT, SvcError } from '../foundation/errors.ts';

/** Throws usage errors instead of exiting, in this command and all subcommands. By default commander exits with 1. */
export function throwUsageErrors(command: Command): Command {
  command.exitOverride();
  command.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'svcd: ')) });
  for (const one of command.commands) throwUsageErrors(one);
  return command;
}

/** The exit code for a thrown value. Help and version output count as success. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
  return error instanceof SvcError ? error.exit : EXIT.failed;
}
