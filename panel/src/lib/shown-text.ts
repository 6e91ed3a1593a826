/** Text from others, as the pages show it. */
import { escapeUnsafe } from '../../../src/foundation/display-text.ts';

/** No line can break in a character with many combining marks, or in a run of wide blanks. */
const UNBREAKABLE =
  /(\p{M}{8})\p{M}+|([\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]{8})[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+/gu;

/** Escapes invisible characters, and cuts off runs that no line can break. */
export function shownText(text: string): string {
  return escapeUnsafe(text.replace(UNBREAKABLE, '$1$2…'));
}
