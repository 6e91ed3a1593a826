/** This machine's own IPv4 addresses: they change, and reading them takes a moment, so they are read now and then. */
import { networkInterfaces } from 'node:os';
import type { Clock } from '../../foundation/clock.ts';

const READ_AGAIN_MS = 5000;

/** Says of a host whether it is an address of this machine. */
export function ownHosts({ clock }: { readonly clock: Clock }): (host: string) => boolean {
  let hosts: ReadonlySet<string> = new Set();
  let readAt = Number.NEGATIVE_INFINITY;
  return (host) => {
    const now = clock.now();
    if (Math.abs(now - readAt) > READ_AGAIN_MS) {
      readAt = now;
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      hosts = new Set(all.map(({ address }) => address));
    }
    return hosts.has(host);
  };
}
