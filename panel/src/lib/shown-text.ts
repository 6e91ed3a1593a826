/** Text from others, as the pages show it. */
import { escapeUnsafe } from '../../../src/foundation/display-text.ts';

/** No line can break in a character with many combining marks, or in a run of wide blanks. */
const UNBREAKABLE = /(\p{M}{8})\p{M}+|([^\P{Zs} ]{8})[^\P{Zs} ]+/gu;

/** Escapes invisible characters, and cuts off runs that no line can break. */
export function shownText(text: string): string {
  return escapeUnsafe(text.replace(UNBREAKABLE, '$1$2…'));
}
