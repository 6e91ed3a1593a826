/** Examples at the end of the help of a command; a test runs each through the parser. */
import type { Command } from 'commander';

/** Arguments as they could be typed, by their names; those of all others are AIDs. */
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
 * @param lines command lines as they are typed; a remark may stand behind `#`
 */
export function examples(...lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}

/** A command line of a command: its name, and what it cannot do without. @param path what is typed before its name */
export function exampleOf(command: Command, path: string): string {
  const needed = command.registeredArguments.filter(({ required }) => required);
  return [path, command.name(), ...needed.map((one) => ARGUMENTS[one.name()] ?? 'aid1…')].join(' ');
}
