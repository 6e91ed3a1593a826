/** This machine's own IPv4 addresses: they change, and reading them takes a moment, so they are read now and then. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../foundation/clock.ts';

const READ_AGAIN_MS = 5000;

export class OwnHosts {
  readonly #clock: Clock;
  #hosts: ReadonlySet<string> = new Set();
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(dependencies: { readonly clock: Clock }) {
    this.#clock = dependencies.clock;
  }

  has(host: string): boolean {
    const now = this.#clock.now();
    if (Math.abs(now - this.#readAt) > READ_AGAIN_MS) {
      this.#readAt = now;
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      this.#hosts = new Set(all.map(({ address }) => address));
    }
    return this.#hosts.has(host);
  }
}
