/** The lines in which two texts differ. */

export interface Line {
  /** -1: only before; 1: only after; 0: in both. */
  readonly side: -1 | 0 | 1;
  readonly text: string;
}

/** Most lines of both texts that are compared one by one. Longer ones are shown one after the other. */
const MAX_COMPARED = 400;

/** The lines of two texts, in order: a longest common subsequence is in both. */
export function diffLines(before: readonly string[], after: readonly string[]): Line[] {
  const line =
    (side: Line['side']) =>
    (text: string): Line => ({ side, text });
  const rows = before.length;
  const columns = after.length;
  if (rows + columns > MAX_COMPARED) return [...before.map(line(-1)), ...after.map(line(1))];
  // `common[i][j]`: common lines of the texts from i and from j.
  const common = Array.from({ length: rows + 1 }, () => Array.from({ length: columns + 1 }, () => 0));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = rows - 1; i >= 0; i--)
    for (let j = columns - 1; j >= 0; j--) {
      const row = common[i];
      if (row === undefined) continue;
      row[j] = before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    const [old, now] = [before[i], after[j]];
    if (old !== undefined && old === now) {
      lines.push(line(0)(old));
      i++;
      j++;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(line(-1)(old));
      i++;
    } else {
      lines.push(line(1)(now ?? ''));
      j++;
    }
  }
  return lines;
}

/** A value as lines: its texts line by line, everything else as JSON. Empty for no value. */
export function linesOf(value: unknown): string[] {
  if (value === null || value === undefined || value === '') return [];
  return (typeof value === 'string' ? value : JSON.stringify(value, null, 2)).split(/\r?\n/);
}
