/** Completion candidates at the cursor, in the format that the shell scripts read. */
import { Argument, type Command, type Option } from 'commander';
import { safeLine } from '../text.ts';
import { optionsOf, readWords } from '../words.ts';
import { FILES, NOTHING } from './scripts.ts';

// The place of the cursor in a command line, and the commands and options possible there.

/** A candidate with its description. */
export interface Candidate {
  readonly word: string;
  readonly about: string;
}

export interface CursorPlace {
  /** Command words up to the place, such as `tunnel close`. Empty at the top. */
  readonly path: string;
  /** The argument or option value that is being typed. */
  readonly taking: Argument | Option | null;
  /** The arguments before it. */
  readonly before: readonly string[];
  /** Values of earlier options, by long name without dashes. */
  readonly given: Readonly<Record<string, string>>;
  /** Commands and options possible here. */
  readonly offered: readonly Candidate[];
}

/** @param words the words before the cursor and the word at the cursor, which may be empty */
function cursorPlace(program: Command, words: readonly string[]): CursorPlace {
  const current = words.at(-1) ?? '';
  const { command, path, given, open, operands: positionals } = readWords(program, words.slice(0, -1));
  const place = { path: path.join(' '), given, before: positionals.map((i) => words[i] ?? '') };
  if (open !== null) return { ...place, taking: open, offered: [] };
  if (current.startsWith('-')) return { ...place, taking: null, offered: optionWords(command) };
  const help = command.createHelp();
  const commands = positionals.length > 0 ? [] : help.visibleCommands(command).filter((one) => one.name() !== 'help');
  const offered = commands.map((one) => ({ word: one.name(), about: help.subcommandDescription(one) }));
  const last = command.registeredArguments.at(-1);
  const taking = command.registeredArguments[positionals.length] ?? (last?.variadic === true ? last : null);
  return { ...place, taking, offered };
}

function optionWords(command: Command): Candidate[] {
  const shown = optionsOf(command).filter(({ hidden }) => !hidden);
  // A command that repeats a global option describes it better.
  const unique = shown.filter(({ long }, i) => shown.findIndex((one) => one.long === long) === i);
  return unique.flatMap(({ long, description }) => (long === undefined ? [] : [{ word: long, about: description }]));
}

/** Longest wait of a shell for the daemon, milliseconds. */
const KNOWN_TIMEOUT_MS = 2_000;

/** Names of arguments that are files or folders. */
const FILE_NAMES: ReadonlySet<string> = new Set(['file', 'dir', 'path']);

function isFile(taking: Argument | Option): boolean {
  const name = taking instanceof Argument ? taking.name() : /[<[](\w+)/.exec(taking.flags)?.[1];
  return FILE_NAMES.has(name ?? '');
}

/** Returns nothing if the work takes too long for interactive use. */
async function inTime<T>(work: Promise<readonly T[]>): Promise<readonly T[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly T[]>((resolve) => {
    timer = setTimeout(() => resolve([]), KNOWN_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } catch {
    // Without a daemon only commands and options are completed.
    return [];
  } finally {
    clearTimeout(timer);
  }
}

/** The line that tells why there is no candidate. */
function nothingLine(taking: Argument | Option | null, current: string, all: readonly Candidate[]): string {
  const isTyped = current !== '' && (all.length > 0 || taking === null);
  const place = taking === null || taking.description === '' ? '' : `: ${safeLine(taking.description)}`;
  const name = taking === null ? '' : taking instanceof Argument ? `<${taking.name()}>` : taking.flags;
  const text = isTyped
    ? `nothing begins with "${safeLine(current)}"`
    : taking === null
      ? 'the command is complete'
      : `no suggestions for ${name}${place}`;
  return `${NOTHING}\t${text}`;
}

/**
 * Lines of `word`, tab, description, or a single line that requests file names or tells why there are none.
 * @param known further candidates for a place
 */
export async function completions(
  program: Command,
  words: readonly string[],
  known: (place: CursorPlace) => Promise<readonly Candidate[]>,
): Promise<string[]> {
  const place = cursorPlace(program, words);
  const { taking, offered } = place;
  const choices = (taking?.argChoices ?? []).map((word) => ({ word, about: '' }));
  const found = taking === null || choices.length > 0 ? [] : await inTime(known(place));
  const current = words.at(-1) ?? '';
  const all = [...offered, ...choices, ...found];
  const fitting = all.filter(({ word }) => word.toLowerCase().startsWith(current.toLowerCase()));
  if (fitting.length === 0) return [taking !== null && isFile(taking) ? FILES : nothingLine(taking, current, all)];
  return fitting.map(({ word, about }) => `${safeLine(word)}\t${safeLine(about)}`);
}
