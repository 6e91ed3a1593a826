/** Metrics of the API. */
import type { Metric, Sample } from '../../foundation/metrics.ts';

/** Upper bounds of the duration histogram, in seconds. */
const BOUNDS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export class HttpMetrics {
  readonly #openConnections: () => number;
  /** Keyed by operation and status. Both come from fixed tables, so there are few keys. */
  readonly #requests = new Map<string, number>();
  readonly #buckets = BOUNDS_S.map(() => 0);
  #seconds = 0;
  #count = 0;

  constructor(openConnections: () => number) {
    this.#openConnections = openConnections;
  }

  /** Counts a request. `operation` is empty if no route matched. */
  record(operation: string, status: number, seconds: number): void {
    const labels = `${operation === '' ? 'none' : operation} ${status}`;
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1);
    const bucket = BOUNDS_S.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#seconds += seconds;
    this.#count++;
  }

  collect(): readonly Metric[] {
    const requests = [...this.#requests].map(([labels, value]) => {
      const [operation = '', status = ''] = labels.split(' ');
      return { labels: { operation, status }, value };
    });
    return [
      {
        name: 'svcd_http_requests_total',
        help: 'Requests to the API, by operation and status.',
        type: 'counter',
        samples: requests,
      },
      {
        name: 'svcd_http_request_duration_seconds',
        help: 'Time from the head of a request to the end of its response.',
        type: 'histogram',
        samples: this.#durations(),
      },
      {
        name: 'svcd_http_connections',
        help: 'Open connections to the API.',
        type: 'gauge',
        samples: [{ value: this.#openConnections() }],
      },
    ];
  }

  #durations(): Sample[] {
    let below = 0;
    const buckets = BOUNDS_S.map((bound, i): Sample => {
      below += this.#buckets[i] ?? 0;
      return { suffix: '_bucket', labels: { le: String(bound) }, value: below };
    });
    return [
      ...buckets,
      { suffix: '_bucket', labels: { le: '+Inf' }, value: this.#count },
      { suffix: '_sum', value: this.#seconds },
      { suffix: '_count', value: this.#count },
    ];
  }
}
