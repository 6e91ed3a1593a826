/** Completion candidates at the cursor, in the format that the shell scripts read. */
import { Argument, type Command, type Option } from 'commander';
import { safeLine } from '../text.ts';
import { type Candidate, type CursorPlace, cursorPlace } from './cursor-place.ts';
import { FILES } from './scripts.ts';

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

/**
 * Lines of `word`, tab, description, or a single line that requests file names.
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
  const current = (words.at(-1) ?? '').toLowerCase();
  const fitting = [...offered, ...choices, ...found].filter(({ word }) => word.toLowerCase().startsWith(current));
  if (fitting.length === 0 && taking !== null && isFile(taking)) return [FILES];
  return fitting.map(({ word, about }) => `${safeLine(word)}\t${safeLine(about)}`);
}
