/** Process metrics with the names of the Prometheus client libraries for Node. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Component } from '../../foundation/lifecycle.ts';
import { type Metric, single } from '../../foundation/metrics.ts';

/** Sampling interval of the event loop delay, in milliseconds. */
const LAG_RESOLUTION_MS = 20;
const NS_PER_S = 1e9;
const US_PER_S = 1e6;

export class ProcessMetrics implements Component {
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  readonly #startedAt = performance.timeOrigin / 1000;

  async start(): Promise<void> {
    this.#lag.enable();
  }

  async stop(): Promise<void> {
    this.#lag.disable();
  }

  /** The current metrics. The event loop delays cover the time since the last call. */
  collect(): readonly Metric[] {
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
