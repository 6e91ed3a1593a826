/** Resolves prefixes of IDs: a prefix stands for the only ID that starts with it. */
import { SvcError } from '../../foundation/errors.ts';

/** Shortest prefix that is shown. */
export const SHOWN_ID_CHARS = 8;
/** Shortest prefix that is accepted. */
const TYPED_ID_CHARS = 4;

/** IDs of tunnels and of access list entries. */
export const LISTED_ID = /^[0-9a-f]{16}$/;

/** A kind of ID, and the command that lists existing IDs. */
export interface IdSource {
  /** The kind in words, such as `group`. */
  readonly noun: string;
  /** The command that lists them. */
  readonly command: string;
  readonly ids: () => Promise<readonly string[]>;
}

/** Length of the shortest prefix that is unique among these IDs, at least `SHOWN_ID_CHARS`. */
export function uniquePrefixLength(ids: Iterable<string>): number {
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
 * The ID for a text, which may be a prefix.
 * @param whole pattern of a complete ID, which is returned unchanged
 * @throws SvcError `invalid_request` if it is not a prefix or matches several IDs, `not_found` if it matches none
 */
export async function resolveId(text: string, whole: RegExp, { noun, command, ids }: IdSource): Promise<string> {
  const typed = text.trim().replace(/…$/, '').toLowerCase();
  if (whole.test(typed)) return typed;
  if (!/^[0-9a-f]+$/.test(typed) || typed.length < TYPED_ID_CHARS)
    throw new SvcError('invalid_request', {
      message: `"${text}" is not a ${noun}. Type its ID, or at least its first ${TYPED_ID_CHARS} characters. ${command} lists them.`,
    });
  const found = [...new Set(await ids())].filter((id) => id.startsWith(typed));
  const [only, ...others] = found;
  if (only === undefined)
    throw new SvcError('not_found', { message: `No ${noun} starts with "${typed}". ${command} lists them.` });
  if (others.length > 0)
    throw new SvcError('invalid_request', {
      message: `"${typed}" matches ${found.length} IDs: ${found.map((id) => id.slice(0, uniquePrefixLength(found))).join(', ')}. Type more characters.`,
    });
  return only;
}
