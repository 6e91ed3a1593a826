/** The beginning of a text, as lists show it. */

/** Characters that lists show of the last entry of a conversation. */
export const MAX_EXCERPT_CHARS = 200;

/** The first characters of a text; none of them is cut in two. */
export function excerpt(text: string): string {
  // A character is two units of a string at most.
  return Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS))
    .slice(0, MAX_EXCERPT_CHARS)
    .join('');
}
