/** Traffic of this node per minute, stored in memory only. */
import type { Clock } from '../../foundation/clock.ts';
import { TRAFFIC_HOURS } from '../../foundation/domain/reach.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';

/** Interval between samples, in milliseconds. */
export const TRAFFIC_SAMPLE_MS = 60_000;
const MAX_SAMPLES = (TRAFFIC_HOURS * 3_600_000) / TRAFFIC_SAMPLE_MS;

/** State of a node at one moment. Bytes count from its start. */
export interface TrafficReading {
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly links: number;
  readonly peers: number;
  readonly tunnels: number;
  readonly ready: boolean;
}

/** One minute: the bytes of that minute, and other values at its end. */
export interface TrafficSample extends TrafficReading {
  /** End of the minute, in Unix milliseconds. */
  readonly at: number;
}

export class TrafficHistory implements Component {
  readonly #clock: Clock;
  readonly #read: () => TrafficReading;
  readonly #log: Log;
  readonly #samples: TrafficSample[] = [];
  #before = { bytesUp: 0, bytesDown: 0 };
  #sampling: RepeatingTask | null = null;

  constructor(clock: Clock, read: () => TrafficReading, log: Log) {
    this.#clock = clock;
    this.#read = read;
    this.#log = log;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#log.error({ error }, 'cannot read the traffic of the last minute');
    this.#sampling = every(this.#clock, { periodMs: TRAFFIC_SAMPLE_MS, onError }, () => this.#sample());
  }

  async stop(): Promise<void> {
    this.#sampling?.stop();
  }

  /** The minutes of the last hours, oldest first. */
  samples(hours: number): readonly TrafficSample[] {
    const since = this.#clock.now() - hours * 3_600_000;
    return this.#samples.filter(({ at }) => at > since);
  }

  #sample(): void {
    const reading = this.#read();
    const { bytesUp, bytesDown } = reading;
    this.#samples.push({
      ...reading,
      at: this.#clock.now(),
      // The total may shrink when closed connections drop out of it.
      bytesUp: Math.max(0, bytesUp - this.#before.bytesUp),
      bytesDown: Math.max(0, bytesDown - this.#before.bytesDown),
    });
    this.#before = { bytesUp, bytesDown };
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift();
  }
}
