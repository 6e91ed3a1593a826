/** Suggests the word that a user most likely meant. */

/** Largest edit distance at which a word is suggested. */
const MAX_CHANGES = 2;

/** The edit distance of two words; two exchanged letters are one edit (optimal string alignment). */
function changes(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (const [i, character] of one.split('').entries()) {
    const next = [i + 1];
    for (const [j, wanted] of other.split('').entries()) {
      const [left = 0, above = 0, corner = 0] = [next[j], row[j + 1], row[j]];
      const exchanged = character === other[j - 1] && wanted === one[i - 1] ? (before[j - 1] ?? 0) + 1 : Infinity;
      next.push(Math.min(left + 1, above + 1, corner + (character === wanted ? 0 : 1), exchanged));
    }
    before = row;
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** The most similar word, if one is similar enough. Case is ignored, and `-` equals `_`. */
export function closestWord(typed: string, words: Iterable<string>): string | undefined {
  const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_]/g, '');
  const near = [...words].map((word) => ({ word, distance: changes(plain(typed), plain(word)) }));
  const [best] = near.sort((a, b) => a.distance - b.distance);
  const most = Math.min(MAX_CHANGES, Math.floor(typed.length / 3));
  return best !== undefined && best.distance <= most ? best.word : undefined;
}
