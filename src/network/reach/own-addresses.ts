/** Where this node can be reached: what it publishes in endpoint records. */
import { type Address, formatAddress, isEveryInterface } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { Log } from '../../foundation/log.ts';
import { ENDPOINT_SCHEME, type HelperNode, MAX_ENDPOINTS } from '../../foundation/records/payloads.ts';
import { every, type Repeating } from '../../foundation/repeat.ts';
import type { RecordNetwork } from '../dht/types.ts';

/** How often the interfaces of this machine are looked at for a change of network, milliseconds. */
export const INTERFACE_LOOK_MS = 5000;

export interface NodeAddresses {
  /** `quic://host:port`, best first. */
  readonly endpoints: readonly string[];
  readonly natType: number;
  readonly helpers: readonly HelperNode[];
}

interface OwnAddressesOptions {
  /** Host name or address to publish while none has been observed; empty for none. */
  readonly fallbackHost: string;
}

interface OwnAddressesDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly records: Pick<RecordNetwork, 'reachability' | 'onReachability'>;
  /** Where the QUIC endpoint listens. */
  readonly quic: () => Address;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: () => readonly string[];
}

export class OwnAddresses implements Component {
  readonly #options: OwnAddressesOptions;
  readonly #deps: OwnAddressesDependencies;
  readonly #changes = new Listeners<[]>();
  #unsubscribe: () => void = () => {};
  #looks: Repeating | null = null;
  #last = '';

  constructor(options: OwnAddressesOptions, dependencies: OwnAddressesDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    this.#last = JSON.stringify(this.#facts());
    this.#unsubscribe = this.#deps.records.onReachability(() => this.#compare());
    const onError = (error: unknown): void => this.#deps.log.warn({ error }, 'own addresses could not be looked at');
    this.#looks = every(this.#deps.clock, { periodMs: INTERFACE_LOOK_MS, onError }, () => this.#compare());
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#looks?.stop();
  }

  /** The addresses of this moment. */
  current(): NodeAddresses {
    return { ...this.#facts(), helpers: [] };
  }

  /** Calls back when `current` gives something else. Returns how to stop. */
  onChange(handler: () => void): () => void {
    return this.#changes.add(handler);
  }

  #facts(): { readonly endpoints: readonly string[]; readonly natType: number } {
    const { natType, observed } = this.#deps.records.reachability();
    const { host, port } = this.#deps.quic();
    const hosts = isEveryInterface(host) ? this.#hostsOfAllInterfaces(observed.map((o) => o.host)) : [host];
    const endpoints = [...new Set(hosts)]
      .slice(0, MAX_ENDPOINTS)
      .map((h) => `${ENDPOINT_SCHEME}${formatAddress({ host: h, port })}`);
    return { endpoints, natType };
  }

  /** What others see of us first, then the addresses for neighbours; loopback where there is nothing else. */
  #hostsOfAllInterfaces(observed: readonly string[]): readonly string[] {
    const own = this.#deps.interfaces().filter((h) => ipScope(h) > IP_SCOPE.link);
    const { fallbackHost } = this.#options;
    const seen = observed.filter((h) => own.length === 0 || ipScope(h) !== IP_SCOPE.loopback);
    const stated = seen.length === 0 && fallbackHost !== '' ? [fallbackHost] : seen;
    const hosts = [...stated, ...own];
    return hosts.length === 0 ? ['127.0.0.1'] : hosts;
  }

  #compare(): void {
    const now = JSON.stringify(this.#facts());
    if (now === this.#last) return;
    this.#last = now;
    this.#changes.tell();
  }
}
