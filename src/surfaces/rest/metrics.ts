/** Metrics of the process and of the API, and the page that shows all metrics. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { type Metric, type MetricSource, type Sample, single } from '../../foundation/metrics.ts';
import type { HttpStreamHandler } from '../../operations/handlers/exchange.ts';

// Metrics of the API.

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

// Process metrics with the names of the Prometheus client libraries for Node.

/** Sampling interval of the event loop delay, in milliseconds. */
const LAG_RESOLUTION_MS = 20;
/** The event loop is watched for this time after a scrape, milliseconds: the samples wake the process 50 times a second. */
const LAG_WATCH_MS = 300_000;
const NS_PER_S = 1e9;
const US_PER_S = 1e6;

export class ProcessMetrics {
  readonly #clock: Clock;
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  readonly #startedAt = performance.timeOrigin / 1000;
  #watch: Timer | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  stop(): void {
    this.#watch?.cancel();
    this.#lag.disable();
  }

  /** The current metrics. The event loop delays cover the time since the last call, if it was not long ago. */
  collect(): readonly Metric[] {
    this.#watch?.cancel();
    this.#watch = this.#clock.after(LAG_WATCH_MS, () => this.#lag.disable());
    this.#lag.enable();
    const memory = process.memoryUsage();
    const cpu = process.cpuUsage();
    const lag = (quantile: string, ns: number): Metric =>
      single(
        `nodejs_eventloop_lag_${quantile}_seconds`,
        'gauge',
        `Event loop delay since the last scrape: ${quantile}.`,
        Math.max(0, ns / NS_PER_S - LAG_RESOLUTION_MS / 1000),
      );
    const metrics = [
      single('process_cpu_user_seconds_total', 'counter', 'User CPU time.', cpu.user / US_PER_S),
      single('process_cpu_system_seconds_total', 'counter', 'System CPU time.', cpu.system / US_PER_S),
      single('process_start_time_seconds', 'gauge', 'Start time of the process in Unix seconds.', this.#startedAt),
      single('process_resident_memory_bytes', 'gauge', 'Resident memory.', memory.rss),
      single('nodejs_heap_size_used_bytes', 'gauge', 'Heap in use.', memory.heapUsed),
      single('nodejs_heap_size_total_bytes', 'gauge', 'Heap reserved.', memory.heapTotal),
      single('nodejs_external_memory_bytes', 'gauge', 'Memory outside the heap.', memory.external),
      ...(this.#lag.count === 0
        ? []
        : [lag('p50', this.#lag.percentile(50)), lag('p99', this.#lag.percentile(99)), lag('max', this.#lag.max)]),
    ];
    this.#lag.reset();
    return metrics;
  }
}

// `GET /metrics` in the Prometheus text format, version 0.0.4.

const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}

function sampleLine(name: string, { suffix, labels = {}, value }: Sample): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  return `${name}${suffix ?? ''}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${numberText(value)}\n`;
}

/** Formats metrics. Metrics without samples are omitted. */
export function metricsText(metrics: readonly Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const comment = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
      const lines = samples.map((sample) => sampleLine(name, sample)).join('');
      return `# HELP ${name} ${comment}\n# TYPE ${name} ${type}\n${lines}`;
    })
    .join('');
}

/** Serves the current metrics of all sources. */
export function metricsHandler(sources: readonly MetricSource[]): HttpStreamHandler {
  return ({ response }) => {
    response.writeHead(200, { 'content-type': TEXT_TYPE }).end(metricsText(sources.flatMap((source) => source())));
  };
}
