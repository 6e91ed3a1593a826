/** SVG paths of the traffic of the node, minute by minute. */

export interface Minute {
  /** Bytes in this minute. */
  readonly up: number;
  readonly down: number;
  readonly isReady: boolean;
}

type Counter = 'up' | 'down';

/** Both lines use the same scale. */
function highest(minutes: readonly Minute[]): number {
  return minutes.reduce((top, { up, down }) => Math.max(top, up, down), 1);
}

/** A line from the left edge to the right edge. Empty with fewer than two points. */
export function lineOf(minutes: readonly Minute[], counter: Counter, width: number, height: number): string {
  if (minutes.length < 2) return '';
  const top = highest(minutes);
  const points = minutes.map((minute, i) => {
    const x = (i * width) / (minutes.length - 1);
    return `${x.toFixed(1)} ${(height - 2 - (minute[counter] / top) * (height - 6)).toFixed(1)}`;
  });
  return `M${points.join('L')}`;
}

/** The area below a line. */
export function areaOf(minutes: readonly Minute[], counter: Counter, width: number, height: number): string {
  const line = lineOf(minutes, counter, width, height);
  return line === '' ? '' : `${line}L${width} ${height}L0 ${height}Z`;
}

/**
 * Combines minutes into a few cells, oldest first.
 *
 * @param cells most cells
 * @returns `good` if the node was on the network in all minutes of a cell, `bad` if in none, `warn` if in some
 */
export function availability(minutes: readonly Minute[], cells: number): ('good' | 'warn' | 'bad')[] {
  const size = Math.max(1, Math.ceil(minutes.length / cells));
  return Array.from({ length: Math.ceil(minutes.length / size) }, (_, i) => {
    const cell = minutes.slice(i * size, (i + 1) * size);
    const ready = cell.filter(({ isReady }) => isReady).length;
    if (ready === cell.length) return 'good';
    return ready === 0 ? 'bad' : 'warn';
  });
}
