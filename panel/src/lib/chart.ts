/** Lines of counters that only grow, as SVG paths of their rate. */

export interface Sample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly up: number;
  readonly down: number;
  readonly isReady: boolean;
}

type Counter = 'up' | 'down';

/** Bytes a second between each two samples. */
export function ratesOf(samples: readonly Sample[], counter: Counter): readonly number[] {
  return samples.slice(1).map((sample, i) => {
    const before = samples[i] ?? sample;
    return ((sample[counter] - before[counter]) * 1000) / Math.max(1, sample.at - before.at);
  });
}

/** Both lines share one scale. */
function highest(samples: readonly Sample[]): number {
  return Math.max(1, ...ratesOf(samples, 'up'), ...ratesOf(samples, 'down'));
}

/** A line from the left edge to the right one; empty where there is nothing to join. */
export function lineOf(samples: readonly Sample[], counter: Counter, width: number, height: number): string {
  const rates = ratesOf(samples, counter);
  if (rates.length < 2) return '';
  const top = highest(samples);
  const points = rates.map((rate, i) => {
    const x = (i * width) / (rates.length - 1);
    return `${x.toFixed(1)} ${(height - 2 - (rate / top) * (height - 6)).toFixed(1)}`;
  });
  return `M${points.join('L')}`;
}

/** The area below such a line. */
export function areaOf(samples: readonly Sample[], counter: Counter, width: number, height: number): string {
  const line = lineOf(samples, counter, width, height);
  return line === '' ? '' : `${line}L${width} ${height}L0 ${height}Z`;
}
