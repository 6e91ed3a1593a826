/** Where this node can be reached: what it publishes in endpoint records. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import {
  ENDPOINT_SCHEME,
  type HelperNode,
  MAX_ENDPOINTS,
  type TurnRendezvous,
} from '../../foundation/records/payloads.ts';
import type { RecordNetwork } from '../records/types.ts';
import { natTypeOf } from './nat.ts';
import { isRefuted, knownAddresses, type OwnAddress, toldAddresses } from './own-address.ts';

export interface NodeAddresses {
  /** `quic://host:port`, best first. */
  readonly endpoints: readonly string[];
  /** Those of them that are ports of our router. */
  readonly mapped: readonly string[];
  readonly natType: number;
  readonly helpers: readonly HelperNode[];
  /** Where this node is met while it has no helper. */
  readonly meeting?: TurnRendezvous;
  /** True where callers may be led here by a TURN server of ours. */
  readonly hasTurn?: true;
}

const NOTHING: NodeAddresses = { endpoints: [], mapped: [], natType: 0, helpers: [] };

/** Whether a change makes a node reachable, or what was told of it wrong. One more helper, or a better guess, does neither. */
function isUrgent(before: NodeAddresses, now: NodeAddresses): boolean {
  const names = ({ helpers }: NodeAddresses): string[] =>
    helpers.map(({ nodeKey, address }) => `${toHex(nodeKey)} ${address}`);
  const helping = new Set(names(now));
  const isFirst = before.helpers.length === 0 && now.helpers.length > 0;
  const places = [before, now].map(({ meeting }) =>
    meeting === undefined ? '' : `${toHex(meeting.publicKey)} ${meeting.host}`,
  );
  return (
    isFirst ||
    places[0] !== places[1] ||
    before.endpoints.join() !== now.endpoints.join() ||
    names(before).some((helper) => !helping.has(helper))
  );
}

function endpointOf(address: Address): string {
  return `${ENDPOINT_SCHEME}${formatAddress(address)}`;
}

interface OwnAddressesOptions {
  /** Host name or address to publish while none has been seen from outside; empty for none. */
  readonly fallbackHost: string;
  /** Whether there is a TURN server that this node may use. */
  readonly hasTurn?: boolean;
}

interface OwnAddressesDependencies {
  readonly records: Pick<RecordNetwork, 'reachability' | 'onReachability'>;
  /** Where the QUIC endpoint listens. */
  readonly quic: () => Address;
  /** The addresses of this machine's interfaces, loopback included. */
  readonly interfaces: () => readonly string[];
}

export class OwnAddresses implements Component {
  readonly #options: OwnAddressesOptions;
  readonly #deps: OwnAddressesDependencies;
  readonly #changes = new Listeners<[isUrgent: boolean]>();
  #unsubscribe: () => void = () => {};
  /** By the part that found them. */
  readonly #found = new Map<string, readonly OwnAddress[]>();
  #dialled: ReadonlyMap<string, boolean> = new Map();
  #helpers: readonly HelperNode[] = [];
  #meeting: TurnRendezvous | null = null;
  #mapping: NatMapping = 'unknown';
  #last: NodeAddresses = NOTHING;

  constructor(options: OwnAddressesOptions, dependencies: OwnAddressesDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    this.#last = this.current();
    this.#unsubscribe = this.#deps.records.onReachability(() => this.#compare());
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
  }

  /** The addresses of this moment. */
  current(): NodeAddresses {
    const told = toldAddresses(this.known()).slice(0, MAX_ENDPOINTS);
    const endpoints = told.map(({ address }) => endpointOf(address));
    const mapped = told.filter(({ source }) => source === 'mapped').map(({ address }) => endpointOf(address));
    const natType = natTypeOf(this.#mapping, this.#deps.records.reachability().natType, this.isRefuted);
    const helpers = this.#helpers;
    const meeting = this.#meeting;
    const isMet = helpers.length > 0 || meeting !== null;
    return {
      endpoints,
      mapped,
      natType,
      helpers,
      ...(meeting === null ? {} : { meeting }),
      ...(isMet && this.#options.hasTurn === true ? { hasTurn: true } : {}),
    };
  }

  /** True where others have dialled all addresses that strangers could reach us at, and have reached none. */
  get isRefuted(): boolean {
    return isRefuted(this.known(), this.#dialled);
  }

  /** Takes whether others that dialled back to an address have reached us, by address. */
  dialledBack(verdicts: ReadonlyMap<string, boolean>): void {
    this.#dialled = verdicts;
    this.#compare();
  }

  /** To be called when this machine may have other addresses than a moment ago. */
  look(): void {
    this.#compare();
  }

  /** Everything that is known of where this node may be reached, the best first. */
  known(): readonly OwnAddress[] {
    const { records, quic, interfaces } = this.#deps;
    return knownAddresses({
      ...this.#options,
      quic: quic(),
      interfaces: interfaces(),
      reachability: records.reachability(),
      found: [...this.#found.values()].flat(),
      dialled: this.#dialled,
    });
  }

  /**
   * Takes what a part has found out, in place of what it said before.
   * @param by names the part
   */
  found(by: string, addresses: readonly OwnAddress[]): void {
    this.#found.set(by, addresses);
    this.#compare();
  }

  /** Takes the helpers that this node is connected to, the best first; at most 4 of them are told to others. */
  helpedBy(helpers: readonly HelperNode[]): void {
    this.#helpers = helpers;
    this.#compare();
  }

  /** Takes where those find this node whom no helper introduces; null where nobody is looked for. */
  metAt(meeting: TurnRendezvous | null): void {
    this.#meeting = meeting;
    this.#compare();
  }

  /** Takes what was found to stand before a port of ours. */
  seenBehind(mapping: NatMapping): void {
    this.#mapping = mapping;
    this.#compare();
  }

  /**
   * Calls back when `current` gives something else: with true where others reach us by what is new, or no more by what
   * they know. Returns how to stop.
   */
  onChange(handler: (isUrgent: boolean) => void): () => void {
    return this.#changes.add(handler);
  }

  #compare(): void {
    const now = this.current();
    const before = this.#last;
    if (JSON.stringify(now) === JSON.stringify(before)) return;
    this.#last = now;
    this.#changes.notify(isUrgent(before, now));
  }
}
