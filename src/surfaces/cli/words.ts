/** Reads the words of a command line as the parser does, before it runs. */
import type { Command, Option } from 'commander';
import { AS_OPTION, isActingArgument, OMITTED_AGENT } from './options.ts';

/** The meaning of the words of a command line. */
export interface ReadWords {
  readonly command: Command;
  /** The command words. */
  readonly path: readonly string[];
  /** Values of options, by long name without dashes. */
  readonly given: Readonly<Record<string, string>>;
  /** The option whose value would come next. */
  readonly open: Option | null;
  /** Number of arguments. */
  readonly operands: number;
  /** Index after the last command word. */
  readonly afterPath: number;
}

/** A command and its parents, nearest first. */
export function lineage(command: Command): Command[] {
  return command.parent === null ? [command] : [command, ...lineage(command.parent)];
}

/** The options of a command and its parents. */
export function optionsOf(command: Command): readonly Option[] {
  return lineage(command).flatMap(({ options }) => options);
}

export function readWords(program: Command, words: readonly string[]): ReadWords {
  const given: Record<string, string> = {};
  const path: string[] = [];
  let command = program;
  let operands = 0;
  let afterPath = 0;
  let open: Option | null = null;
  let isOver = false;
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
      if (option === undefined || !(option.required || option.optional)) continue;
      if (value === undefined) open = option;
      else given[option.name()] = value;
    } else {
      const next =
        operands > 0 || isOver
          ? undefined
          : command.commands.find((one) => one.name() === word || one.aliases().includes(word));
      if (next === undefined) operands++;
      else {
        command = next;
        path.push(next.name());
        afterPath = i + 1;
      }
    }
  }
  return { command, path, given, open, operands, afterPath };
}

/**
 * The words of a command line with a placeholder for an acting agent that is named by `--as`, or not at all. Only
 * commands whose first argument is the acting agent need it.
 */
export function withActingArgument(program: Command, words: readonly string[]): readonly string[] {
  const { command, given, operands, afterPath } = readWords(program, words);
  const [first, ...others] = command.registeredArguments;
  if (first === undefined || !isActingArgument(first)) return words;
  const needed = others.filter(({ required }) => required).length;
  const isOmitted = given[AS_NAME] !== undefined || operands === needed;
  return isOmitted ? [...words.slice(0, afterPath), OMITTED_AGENT, ...words.slice(afterPath)] : words;
}

/** `as` */
const AS_NAME = AS_OPTION.slice(2, AS_OPTION.indexOf(' '));
