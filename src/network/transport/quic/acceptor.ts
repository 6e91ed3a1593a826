/**
 * Takes handshakes from a server of the engine, side by side. One call of the engine holds one
 * handshake from its first packet on, and a packet from nowhere holds it until the idle time-out;
 * so there are always more calls waiting than handshakes can be unfinished.
 */

import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { Log } from '../../../foundation/log.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import type { EngineConnection, EngineServer } from './engine.ts';

/** Calls that always wait, whatever the unfinished handshakes hold. */
export const SPARE_ACCEPTS = 48;

/**
 * Unfinished handshakes at one time, about 370 KB each in the engine: most of it is set aside for the streams that may
 * come. With more of them new ones wait until the oldest time out.
 */
export const MAX_UNFINISHED_HANDSHAKES = 512;

/** So many unfinished handshakes, and more than succeed, are a flood, which is to be stopped before it is let in. */
export const FLOOD_HANDSHAKES = 48;

/** By how many a flood that goes on is let in further, each time that calls are adapted: 8 a second. */
const FLOOD_GROWTH = 0.8;

/** Calls that are added during a flood in place of those that failed, each time: each handshake takes a millisecond. */
const FLOOD_CALLS = 20;

/** How often the number of waiting calls is adapted. */
const ADAPT_INTERVAL_MS = 100;

/** Added to the idle time-out, after which the engine has surely given up a handshake. */
const EXPIRY_SLACK_MS = 1_000;

interface Sample {
  readonly at: number;
  /** Handshakes that the engine has begun and that did not succeed, so far. */
  readonly begun: number;
  readonly succeeded: number;
}

interface AcceptorOptions {
  /** When the engine gives up an unfinished handshake, milliseconds. */
  readonly idleTimeoutMs: number;
  readonly onConnection: (connection: EngineConnection) => void;
  /** Told again and again for as long as there is a flood. */
  readonly onFlood: () => void;
}

export class Acceptor {
  readonly #server: EngineServer;
  readonly #options: AcceptorOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  #samples: Sample[] = [];
  #succeeded = 0;
  #waiting = 0;
  /** How many unfinished handshakes there may be now. */
  #allowed = FLOOD_HANDSHAKES;
  #stopped = false;
  #adapting: RepeatingTask | null = null;

  constructor(
    server: EngineServer,
    options: AcceptorOptions,
    dependencies: { readonly clock: Clock; readonly log: Log },
  ) {
    this.#server = server;
    this.#options = options;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
  }

  start(): void {
    const onError = (error: unknown): void =>
      this.#log.warn({ error }, 'the number of waiting handshakes is not adapted');
    this.#adapt();
    this.#adapting = every(this.#clock, { periodMs: ADAPT_INTERVAL_MS, onError }, () => this.#adapt());
  }

  /** Stops taking handshakes; the calls that wait end when the server is aborted. */
  stop(): void {
    this.#stopped = true;
    this.#adapting?.stop();
  }

  #adapt(): void {
    const { unfinished, succeeded } = this.#lately();
    const isFlood = unfinished >= FLOOD_HANDSHAKES && unfinished > succeeded;
    this.#allowed = isFlood ? Math.min(this.#allowed + FLOOD_GROWTH, MAX_UNFINISHED_HANDSHAKES) : FLOOD_HANDSHAKES;
    // Twice as many, as more come until the next look.
    const target = Math.min(2 * unfinished, Math.floor(this.#allowed)) + SPARE_ACCEPTS;
    this.#fill(isFlood ? Math.min(target, this.#waiting + FLOOD_CALLS) : target);
    if (isFlood) this.#options.onFlood();
  }

  #fill(target: number): void {
    while (this.#waiting < target) detach(this.#accept());
  }

  /**
   * How many handshakes succeeded within the time-out, and an upper bound of those under way: those begun within it and
   * not succeeded. Failed ones count until they expire, as the engine does not say which kind a failure was.
   */
  #lately(): { readonly unfinished: number; readonly succeeded: number } {
    const now = this.#clock.now();
    const begun = this.#server.stats().acceptedHandshakes - this.#succeeded;
    const horizon = now - this.#options.idleTimeoutMs - EXPIRY_SLACK_MS;
    const last = this.#samples.at(-1);
    if (last === undefined || last.at <= now - ADAPT_INTERVAL_MS)
      this.#samples.push({ at: now, begun, succeeded: this.#succeeded });
    const firstKept = this.#samples.findIndex(({ at }) => at > horizon);
    // The newest sample from before the horizon is the baseline.
    if (firstKept > 1) this.#samples = this.#samples.slice(firstKept - 1);
    const baseline = firstKept > 0 ? this.#samples[0] : undefined;
    return {
      unfinished: Math.max(0, begun - (baseline?.begun ?? 0)),
      succeeded: this.#succeeded - (baseline?.succeeded ?? 0),
    };
  }

  async #accept(): Promise<void> {
    this.#waiting++;
    try {
      const connection = await this.#server.inboundConnection();
      this.#succeeded++;
      this.#waiting--;
      if (this.#stopped) return connection.abort();
      this.#fill(this.#waiting + 1);
      this.#options.onConnection(connection);
    } catch {
      // A handshake that failed, or the server has been aborted: the other side's business either way.
      this.#waiting--;
    }
  }
}
