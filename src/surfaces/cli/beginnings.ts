/** Beginnings of ids: what is typed stands for the one id that begins so. */
import { SvcError } from '../../foundation/errors.ts';

/** Fewest characters of an id that are shown. */
export const SHOWN_ID_CHARS = 8;
/** Fewest characters that stand for an id. */
const TYPED_ID_CHARS = 4;

/** Ids of tunnels and of entries of access lists. */
export const LISTED_ID = /^[0-9a-f]{16}$/;

/** What an id may be, and where it is looked up. */
export interface Listed {
  /** In words: `group`. */
  readonly noun: string;
  /** The command that shows those that are there. */
  readonly command: string;
  readonly ids: () => Promise<readonly string[]>;
}

/** How many characters tell these ids apart, at least `SHOWN_ID_CHARS`. */
export function charsThatTell(ids: Iterable<string>): number {
  const sorted = [...new Set(ids)].sort();
  const shared = sorted.map((id, i) => {
    const next = sorted[i + 1] ?? '';
    let same = 0;
    while (same < id.length && id[same] === next[same]) same++;
    return same + 1;
  });
  return Math.max(SHOWN_ID_CHARS, ...shared);
}

/**
 * The id that a text is or begins.
 * @param whole what an id looks like; such a text is taken as it is
 * @throws SvcError `invalid_request` where it is no beginning, or that of several; `not_found` where none begins so
 */
export async function idFor(text: string, whole: RegExp, { noun, command, ids }: Listed): Promise<string> {
  const typed = text.trim().replace(/…$/, '').toLowerCase();
  if (whole.test(typed)) return typed;
  if (!/^[0-9a-f]+$/.test(typed) || typed.length < TYPED_ID_CHARS)
    throw new SvcError('invalid_request', {
      message: `"${text}" is no ${noun}: type its id, or at least ${TYPED_ID_CHARS} characters of its beginning. ${command} shows them.`,
    });
  const found = [...new Set(await ids())].filter((id) => id.startsWith(typed));
  const [only, ...others] = found;
  if (only === undefined)
    throw new SvcError('not_found', { message: `No ${noun} here begins with "${typed}". ${command} shows them.` });
  if (others.length > 0)
    throw new SvcError('invalid_request', {
      message: `"${typed}" is the beginning of ${found.length} ids: ${found.map((id) => id.slice(0, charsThatTell(found))).join(', ')}. Type more of it.`,
    });
  return only;
}
