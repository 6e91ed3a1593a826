/** The commands of `svc` and `svcd`, for the generated pages. */
import { PassThrough } from 'node:stream';
import type { Command } from 'commander';
import { daemonProgram } from '../src/daemon/args.ts';
import { buildProgram } from '../src/surfaces/cli/program.ts';

/** An argument or option with its description. */
export interface Word {
  /** As it is typed: `--api <url>`. */
  readonly typed: string;
  readonly meaning: string;
}

export interface CommandText {
  /** `svc tunnel open <aid>`. */
  readonly usage: string;
  readonly about: string;
  readonly arguments: readonly Word[];
  readonly options: readonly Word[];
  /** The heading in the help of its parent, such as `Agents:`; empty without one. */
  readonly group: string;
  /** Command lines. */
  readonly examples: readonly string[];
  readonly commands: readonly CommandText[];
}

/** Commands that the command line library adds. */
export const BUILT_IN: ReadonlySet<string> = new Set(['help', 'complete']);

/** @param build from the sources or a bundle */
export function clientProgram(build = buildProgram): Promise<Command> {
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
  return build(io, { version: '0', dataDir: '' });
}

export function svcdProgram(): Command {
  return daemonProgram(
    '0',
    () => 'svcd in the user configuration directory',
    async () => {},
  );
}

/** The printed help of a command. */
export function helpText(command: Command): string {
  let text = '';
  const capture = { writeOut: (part: string) => void (text += part), getOutHelpWidth: () => 400 };
  command.configureOutput(capture).outputHelp();
  return text;
}

/** The command lines of the last part of a help text. */
export function examplesIn(help: string): string[] {
  const part = /\nExamples?:\n((?: {2}.+\n?)+)/.exec(help)?.[1] ?? '';
  return part.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** @param path what is typed before the arguments: `svc tunnel open` */
export function describeCommand(command: Command, path: string): CommandText {
  const help = command.createHelp();
  const typed = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? '…' : ''}`;
    return one.required ? `<${name}>` : `[${name}]`;
  });
  return {
    usage: [path, ...typed].join(' '),
    about: help.commandDescription(command),
    group: command.helpGroup(),
    arguments: command.registeredArguments
      .filter(({ description }) => description !== '')
      .map((one) => ({ typed: one.name(), meaning: one.description })),
    options: help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map(({ flags, description }) => ({ typed: flags, meaning: description })),
    examples: examplesIn(helpText(command)),
    commands: command.commands
      .filter((one) => !BUILT_IN.has(one.name()))
      .map((one) => describeCommand(one, `${path} ${one.name()}`)),
  };
}
