/** Examples at the end of a command's help. A test parses each example. */
import type { Command } from 'commander';

/** Sample arguments by name. All others are AIDs. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  entry: '4be1…',
  group: '9f2c…',
  id: '3',
  label: 'bob',
  object: '9f2c…',
  service: 'lang.translate',
};

/**
 * The text for `addHelpText('after', …)`.
 * @param lines command lines; a comment may follow after `#`
 */
export function exampleHelp(...lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** A command line with only the required arguments. @param path the words before the command's name */
export function sampleCommandLine(command: Command, path: string): string {
  const needed = command.registeredArguments.filter(({ required }) => required);
  return [path, command.name(), ...needed.map((one) => ARGUMENTS[one.name()] ?? 'aid1…')].join(' ');
}
