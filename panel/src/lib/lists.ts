/** Lists that people type. */

/** The items of a text, separated by commas. */
export function listOf(text: string): string[] {
  return text.split(/[\s,，、]+/).filter((item) => item !== '');
}
