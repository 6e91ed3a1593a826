/** What may stand where the cursor is, as the scripts of the shells read it. */
import { Argument, type Command, type Option } from 'commander';
import { safeLine } from '../text.ts';
import { type Candidate, type TypingPlace, typingPlaceOf } from './place.ts';
import { FILES } from './scripts.ts';

/** Longest that a shell waits for what the daemon knows, milliseconds. */
const KNOWN_TIMEOUT_MS = 2_000;

/** Names of values that are files or folders. */
const FILE_NAMES: ReadonlySet<string> = new Set(['file', 'dir', 'path']);

function isFile(taking: Argument | Option): boolean {
  const name = taking instanceof Argument ? taking.name() : /[<[](\w+)/.exec(taking.flags)?.[1];
  return FILE_NAMES.has(name ?? '');
}

/** Gives nothing where it takes longer than a person waits at the key. */
async function inTime<T>(work: Promise<readonly T[]>): Promise<readonly T[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly T[]>((resolve) => {
    timer = setTimeout(() => resolve([]), KNOWN_TIMEOUT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } catch {
    // Without a daemon the commands are completed all the same.
    return [];
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Lines of `word`, tab, meaning; or the one that says that files belong there.
 * @param known what else could stand at a place
 */
export async function completions(
  program: Command,
  words: readonly string[],
  known: (place: TypingPlace) => Promise<readonly Candidate[]>,
): Promise<string[]> {
  const place = typingPlaceOf(program, words);
  const { taking, offered } = place;
  const choices = (taking?.argChoices ?? []).map((word) => ({ word, about: '' }));
  const found = taking === null || choices.length > 0 ? [] : await inTime(known(place));
  const current = (words.at(-1) ?? '').toLowerCase();
  const fitting = [...offered, ...choices, ...found].filter(({ word }) => word.toLowerCase().startsWith(current));
  if (fitting.length === 0 && taking !== null && isFile(taking)) return [FILES];
  return fitting.map(({ word, about }) => `${safeLine(word)}\t${safeLine(about)}`);
}
