/** Reads the words of a command line as the parser does, before it runs. */
import type { Command, Option } from 'commander';
import { meantCommand } from './meant.ts';
import { AS_OPTION, argumentRule, OMITTED_AGENT } from './options.ts';

/** The meaning of the words of a command line. */
export interface ReadWords {
  readonly command: Command;
  /** The command words. */
  readonly path: readonly string[];
  /** Values of options, by long name without dashes. Empty for an option without a value. */
  readonly given: Readonly<Record<string, string>>;
  /** The option whose value would come next. */
  readonly open: Option | null;
  /** Indexes of the arguments. */
  readonly operands: readonly number[];
  /** Index after the last command word. */
  readonly afterPath: number;
  /** It contains an option that does not exist. */
  readonly isStrange: boolean;
  /** It requests the help of a command. */
  readonly isHelp: boolean;
}

/** A command and its parents, nearest first. */
export function lineage(command: Command): Command[] {
  return command.parent === null ? [command] : [command, ...lineage(command.parent)];
}

/** The options of a command and its parents. */
export function optionsOf(command: Command): readonly Option[] {
  return lineage(command).flatMap(({ options }) => options);
}

/** The words that lead to a command, such as `svc tunnel open`. */
export function commandPath(command: Command): string {
  return lineage(command)
    .map((one) => one.name())
    .reverse()
    .join(' ');
}

/** Help without the aliases of commands. */
export const SILENT_ALIASES = {
  subcommandTerm: (command: Command): string => `${command.name()} ${argumentsOf(command)}`.trimEnd(),
  commandUsage: (command: Command): string => `${commandPath(command)} ${command.usage()}`,
};

function argumentsOf({ registeredArguments }: Command): string {
  return registeredArguments
    .map((one) => [one.required ? '<' : '[', one.name(), one.variadic ? '...' : '', one.required ? '>' : ']'].join(''))
    .join(' ');
}

/** Options that the parser adds. */
const ADDED_OPTIONS: ReadonlySet<string> = new Set(['-h', '--help']);
/** The word that shows help in place of an option. */
const HELP = 'help';

export function readWords(program: Command, words: readonly string[]): ReadWords {
  const given: Record<string, string> = {};
  const path: string[] = [];
  const operands: number[] = [];
  let command = program;
  let afterPath = 0;
  let open: Option | null = null;
  let [isOver, isStrange, isHelp] = [false, false, false];
  for (const [i, word] of words.entries()) {
    // The value of an option is required, or optional and cannot look like an option.
    if (open !== null && (open.required || !word.startsWith('-'))) {
      given[open.name()] = word;
      open = null;
      continue;
    }
    open = null;
    if (word === '--' && !isOver) isOver = true;
    else if (word.startsWith('-') && word !== '-' && !isOver) {
      const [flag = '', value] = word.split('=', 2);
      const option = optionsOf(command).find(({ short, long }) => flag === long || flag === short);
      if (option === undefined) {
        isStrange ||= !ADDED_OPTIONS.has(flag);
        continue;
      }
      given[option.name()] = value ?? '';
      if (value === undefined && (option.required || option.optional)) open = option;
    } else {
      const isFirst = operands.length === 0 && !isOver;
      const next = isFirst
        ? command.commands.find((one) => one.name() === word || one.aliases().includes(word))
        : undefined;
      if (next !== undefined) {
        command = next;
        path.push(next.name());
        afterPath = i + 1;
      } else if (isFirst && word === HELP && isGroup(command)) isHelp = true;
      else operands.push(i);
    }
  }
  return { command, path, given, open, operands, afterPath, isStrange, isHelp };
}

/** True for a command whose first argument can only be a subcommand. */
function isGroup({ commands, registeredArguments }: Command): boolean {
  return commands.length > 0 && registeredArguments.length === 0;
}

/** Commands without arguments that show a list. */
const lists = new WeakSet<Command>();
/** Words for a list, after the name of a command that shows it anyway. */
const LIST_WORDS: ReadonlySet<string> = new Set(['list', 'ls']);

/** Notes that a command without further words shows a list. */
export function showsList(command: Command): void {
  lists.add(command);
}

/** A command line as the parser needs it. */
export interface UnderstoodWords {
  readonly words: readonly string[];
  /** True if two arguments were in the wrong order. */
  readonly isReordered: boolean;
}

/**
 * The words that the parser needs:
 * - without `list` or `ls` after a command that lists anyway
 * - with a placeholder for an acting agent that is named by `--as`, or not at all
 * - with two arguments exchanged if only that order is possible
 * @throws CommanderError for a command that does not exist, also if only its help is requested
 */
export function understoodWords(program: Command, words: readonly string[]): UnderstoodWords {
  const { command, operands, afterPath, given, isStrange, isHelp } = readWords(program, words);
  const [first] = operands;
  const word = first === undefined ? undefined : words[first];
  const isPlain = command.registeredArguments.length === 0;
  if (first !== undefined && isPlain && LIST_WORDS.has(word ?? '') && lists.has(command))
    return { words: words.toSpliced(first, 1), isReordered: false };
  if (word !== undefined && isGroup(command) && !isStrange) {
    const meant = meantCommand(command, commandPath(command), word);
    const hint = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
    command.error(`error: unknown command '${word}'${hint}`, { code: 'commander.unknownCommand' });
  }
  if (isHelp || isPlain) return { words, isReordered: false };
  const places = command.registeredArguments;
  const rules = places.map(argumentRule);
  const needed = places.filter(
    ({ required }, i) => i > 0 && (required || rules[i]?.unless?.every((name) => given[name] === undefined)),
  );
  const isOmitted = rules[0]?.acts === true && (given[AS_NAME] !== undefined || operands.length === needed.length);
  const full = isOmitted ? words.toSpliced(afterPath, 0, OMITTED_AGENT) : words;
  const at = isOmitted ? [afterPath, ...operands.map((index) => index + 1)] : operands;
  for (let i = 0; i + 1 < at.length; i++) {
    const [left = 0, right = 0] = at.slice(i);
    const [a = '', b = ''] = [full[left], full[right]];
    const isWrong = (one: (typeof rules)[number] | undefined, here: string, there: string): boolean =>
      one?.fits !== undefined && here !== OMITTED_AGENT && !one.fits(here) && one.fits(there);
    const stays = (one: (typeof rules)[number] | undefined, there: string): boolean => one?.fits?.(there) !== false;
    const [now, then] = [rules[i], rules[i + 1]];
    if ((isWrong(now, a, b) && stays(then, a)) || (isWrong(then, b, a) && stays(now, b) && a !== OMITTED_AGENT))
      return { words: full.with(left, b).with(right, a), isReordered: true };
  }
  return { words: full, isReordered: false };
}

/** `as` */
const AS_NAME = AS_OPTION.slice(2, AS_OPTION.indexOf(' '));
