/** Metrics of a component, in the terms of the Prometheus text format. */

export interface Sample {
  readonly value: number;
  /** Few and bounded, because each combination is a series. Never use names that strangers choose. */
  readonly labels?: Readonly<Record<string, string>>;
  /** `_bucket`, `_sum` and `_count` of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
}

export interface Metric {
  /** snake_case with the unit at the end: `svcd_tunnel_bytes_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly Sample[];
}

/** Called for every scrape, so it must be cheap. */
export type MetricSource = () => readonly Metric[];

/** A metric with one value and no labels. */
export function single(name: string, type: 'counter' | 'gauge', help: string, value: number): Metric {
  return { name, help, type, samples: [{ value }] };
}
