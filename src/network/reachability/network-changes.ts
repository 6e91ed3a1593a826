/** Notices that this machine may be on another network: its addresses are others, or it has slept. */
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { SLEEP_MS } from '../../foundation/stall.ts';

/** How often the interfaces are looked at, milliseconds. */
export const NETWORK_LOOK_MS = 1_000;

export class NetworkChanges implements Component {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #interfaces: () => readonly string[];
  readonly #changes = new Listeners<[]>();
  #looks: RepeatingTask | null = null;
  #lookedAt = 0;
  #addresses = '';

  /** @param interfaces returns the addresses of this machine's interfaces */
  constructor(clock: Clock, log: Log, interfaces: () => readonly string[]) {
    this.#clock = clock;
    this.#log = log;
    this.#interfaces = interfaces;
  }

  async start(): Promise<void> {
    const [clock, log] = [this.#clock, this.#log];
    this.#lookedAt = clock.now();
    this.#addresses = this.#current();
    const onError = (error: unknown): void => log.warn({ error }, 'the network could not be looked at');
    this.#looks = every(clock, { periodMs: NETWORK_LOOK_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
  }

  /** Calls back when this machine may be on another network. Returns how to stop. */
  onChange(handler: () => void): () => void {
    return this.#changes.add(handler);
  }

  /** Those that lead to other machines. */
  #current(): string {
    const wide = this.#interfaces().filter((host) => ipScope(host) > IP_SCOPE.link);
    return wide.toSorted().join();
  }

  #look(): void {
    const now = this.#clock.now();
    const hasSlept = now - this.#lookedAt > SLEEP_MS;
    this.#lookedAt = now;
    const addresses = this.#current();
    if (!hasSlept && addresses === this.#addresses) return;
    this.#addresses = addresses;
    this.#log.info({ hasSlept, addresses }, 'this machine may be on another network');
    this.#changes.notify();
  }
}
