/** Selects the rows of a long table that are in the page. */

/** Extra rows above and below the visible ones. */
const SPARE = 8;
/** Shorter tables are rendered completely. */
export const WHOLE_ROWS = 60;

/**
 * The first row, and the row after the last one.
 *
 * @param offset distance from the start of the table to the start of the visible area, pixels
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
