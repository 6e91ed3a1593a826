/** Lists as people type them. */

/** The items of a text, between commas and blanks. */
export function listOf(text: string): string[] {
  return text.split(/[\s,，、]+/).filter((item) => item !== '');
}
