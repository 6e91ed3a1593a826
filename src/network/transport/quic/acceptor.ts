/**
 * Accepts handshakes from a server of the engine in parallel. One call of the engine handles one handshake from its
 * first packet, and a forged packet occupies it until the idle timeout. So there are always more pending calls than
 * possible unfinished handshakes.
 */

import type { Clock } from '../../../foundation/clock.ts';
import { detach } from '../../../foundation/detached.ts';
import type { Log } from '../../../foundation/log.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import type { EngineConnection } from '../engine-connection.ts';
import type { EngineServer } from './engine.ts';

/** Pending calls in addition to unfinished handshakes. */
export const SPARE_ACCEPTS = 48;

/**
 * Unfinished handshakes at one time. Each needs about 370 KB in the engine, mostly reserved for future streams. Above
 * this number, new handshakes wait until the oldest time out.
 */
export const MAX_UNFINISHED_HANDSHAKES = 512;

/**
 * This many unfinished handshakes, and more than succeed, are a flood. Its packets are dropped before the engine sees
 * them.
 */
export const FLOOD_HANDSHAKES = 48;

/** How much more of a continuing flood is accepted each time that the calls are adapted: 8 a second. */
const FLOOD_GROWTH = 0.8;

/** Calls that replace failed ones during a flood, each time: a handshake takes a millisecond. */
const FLOOD_CALLS = 20;

/** How often the number of pending calls is adapted, milliseconds, and the longest pause without handshakes. */
const ADAPT_INTERVAL_MS = 100;
export const QUIET_ADAPT_INTERVAL_MS = 2_000;

/** Added to the idle timeout, after which the engine has certainly dropped a handshake. */
const EXPIRY_SLACK_MS = 1_000;

interface Sample {
  readonly at: number;
  /** Handshakes that the engine has started and that have not succeeded, in total. */
  readonly begun: number;
  readonly succeeded: number;
}

interface AcceptorOptions {
  /** When the engine drops an unfinished handshake, milliseconds. */
  readonly idleTimeoutMs: number;
  /** How often the number of pending calls is adapted, milliseconds. */
  readonly adaptMs?: number | undefined;
  readonly onConnection: (connection: EngineConnection) => void;
  /** Called repeatedly during a flood. */
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
  /** Unfinished handshakes that are allowed now. */
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
      this.#log.warn({ error }, 'could not adapt the number of pending handshakes');
    const periodMs = this.#options.adaptMs ?? ADAPT_INTERVAL_MS;
    this.#adapt();
    this.#adapting = every(this.#clock, { periodMs, onError }, () => this.#adapt());
  }

  /** Stops accepting handshakes. Pending calls end when the server is aborted. */
  stop(): void {
    this.#stopped = true;
    this.#adapting?.stop();
  }

  /** @returns milliseconds until the next time */
  #adapt(): number {
    const { unfinished, succeeded } = this.#lately();
    const isFlood = unfinished >= FLOOD_HANDSHAKES && unfinished > succeeded;
    this.#allowed = isFlood ? Math.min(this.#allowed + FLOOD_GROWTH, MAX_UNFINISHED_HANDSHAKES) : FLOOD_HANDSHAKES;
    // Twice as many, because more arrive until the next check.
    const target = Math.min(2 * unfinished, Math.floor(this.#allowed)) + SPARE_ACCEPTS;
    this.#fill(isFlood ? Math.min(target, this.#waiting + FLOOD_CALLS) : target);
    if (isFlood) this.#options.onFlood();
    return this.#options.adaptMs ?? (unfinished === 0 ? QUIET_ADAPT_INTERVAL_MS : ADAPT_INTERVAL_MS);
  }

  #fill(target: number): void {
    while (this.#waiting < target) detach(this.#accept());
  }

  /**
   * How many handshakes succeeded within the timeout, and an upper bound of those in progress: started within it and
   * not succeeded. Failed ones count until they expire, because the engine does not report why a handshake failed.
   */
  #lately(): { readonly unfinished: number; readonly succeeded: number } {
    const now = this.#clock.monotonic();
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
      // A handshake that failed, or an aborted server. Both are expected.
      this.#waiting--;
      this.#adapting?.soon(ADAPT_INTERVAL_MS);
    }
  }
}
