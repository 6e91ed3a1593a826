/** Lines of what went through the node, minute by minute, as SVG paths. */

export interface Minute {
  /** Bytes of this minute. */
  readonly up: number;
  readonly down: number;
  readonly isReady: boolean;
}

type Counter = 'up' | 'down';

/** Both lines share one scale. */
function highest(minutes: readonly Minute[]): number {
  return minutes.reduce((top, { up, down }) => Math.max(top, up, down), 1);
}

/** A line from the left edge to the right one; empty where there is nothing to join. */
export function lineOf(minutes: readonly Minute[], counter: Counter, width: number, height: number): string {
  if (minutes.length < 2) return '';
  const top = highest(minutes);
  const points = minutes.map((minute, i) => {
    const x = (i * width) / (minutes.length - 1);
    return `${x.toFixed(1)} ${(height - 2 - (minute[counter] / top) * (height - 6)).toFixed(1)}`;
  });
  return `M${points.join('L')}`;
}

/** The area below such a line. */
export function areaOf(minutes: readonly Minute[], counter: Counter, width: number, height: number): string {
  const line = lineOf(minutes, counter, width, height);
  return line === '' ? '' : `${line}L${width} ${height}L0 ${height}Z`;
}

/**
 * Minutes put together to few cells, the oldest first.
 * @param cells at most so many
 * @returns `good` where the node was on the network in all of a cell's minutes, `bad` in none, `warn` in some
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
