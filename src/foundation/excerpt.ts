/** Shortens texts for lists. */

/** Maximum number of characters of the last entry that a list of conversations shows. */
export const MAX_EXCERPT_CHARS = 200;

/** The first characters of a text, never cut inside a character. */
export function excerpt(text: string): string {
  // A character has at most two string units.
  return Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS))
    .slice(0, MAX_EXCERPT_CHARS)
    .join('');
}
