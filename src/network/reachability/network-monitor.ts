/** Detects that this machine may be on another network: its addresses changed, or it was suspended. */
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { SLEEP_MS } from '../../foundation/stall.ts';

/** Interval between checks, milliseconds. */
export const NETWORK_CHECK_MS = 1_000;

export class NetworkMonitor implements Component {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #interfaces: () => readonly string[];
  readonly #changes = new Listeners<[]>();
  #checks: RepeatingTask | null = null;
  #checkedAt = 0;
  #addresses = '';

  /** @param interfaces returns the addresses of this machine's interfaces */
  constructor(clock: Clock, log: Log, interfaces: () => readonly string[]) {
    this.#clock = clock;
    this.#log = log;
    this.#interfaces = interfaces;
  }

  async start(): Promise<void> {
    const [clock, log] = [this.#clock, this.#log];
    this.#checkedAt = clock.now();
    this.#addresses = this.#readAddresses();
    const onError = (error: unknown): void => log.warn({ error }, 'cannot check for a network change');
    this.#checks = every(clock, { periodMs: NETWORK_CHECK_MS, onError }, () => this.#check());
  }

  async stop(): Promise<void> {
    this.#checks?.stop();
  }

  /** Subscribes to network changes. Returns a function that unsubscribes. */
  onChange(handler: () => void): () => void {
    return this.#changes.add(handler);
  }

  /** The addresses that other machines can reach. */
  #readAddresses(): string {
    const wide = this.#interfaces().filter((host) => ipScope(host) > IP_SCOPE.link);
    return wide.toSorted().join();
  }

  #check(): void {
    const now = this.#clock.now();
    const hasSlept = now - this.#checkedAt > SLEEP_MS;
    this.#checkedAt = now;
    const addresses = this.#readAddresses();
    if (!hasSlept && addresses === this.#addresses) return;
    this.#addresses = addresses;
    this.#log.info({ hasSlept, addresses }, 'this machine may be on another network');
    this.#changes.notify();
  }
}
