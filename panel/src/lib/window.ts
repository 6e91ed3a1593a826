/** Which rows of a long table are in the page. */

/** Rows above and below what is seen. */
const SPARE = 8;
/** Shorter tables are whole. */
export const WHOLE_ROWS = 60;

/**
 * The first row and the one behind the last.
 * @param offset how far the beginning of the table is above the beginning of what is seen, pixels
 */
export function rowsInView(
  count: number,
  offset: number,
  height: number,
  rowHeight: number,
): readonly [number, number] {
  if (count <= WHOLE_ROWS) return [0, count];
  const most = WHOLE_ROWS - 2 * SPARE;
  const from = Math.max(0, Math.min(count, Math.floor(offset / rowHeight)) - SPARE);
  const seen = Math.min(most, Math.ceil(height / rowHeight) + 1);
  return [from, Math.min(count, from + seen + 2 * SPARE)];
}
