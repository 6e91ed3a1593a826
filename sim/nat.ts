/** A NAT. Terms as in RFC 4787. */
import { type Address, formatAddress } from '../src/foundation/address.ts';
import type { Random } from '../test/support/random.ts';
import type { Machine } from './udp-network.ts';

/** The part of the remote endpoint that selects a mapping or passes a filter. */
export type Dependence = 'endpoint-independent' | 'address-dependent' | 'address-and-port-dependent';

export interface NatKind {
  readonly mapping: Dependence;
  readonly filtering: Dependence;
  /** Milliseconds without an outbound datagram after which a mapping ends. */
  readonly timeoutMs: number;
}

export const NAT_KINDS = {
  fullCone: { mapping: 'endpoint-independent', filtering: 'endpoint-independent', timeoutMs: 120_000 },
  restricted: { mapping: 'endpoint-independent', filtering: 'address-dependent', timeoutMs: 60_000 },
  portRestricted: { mapping: 'endpoint-independent', filtering: 'address-and-port-dependent', timeoutMs: 30_000 },
  symmetric: { mapping: 'address-and-port-dependent', filtering: 'address-and-port-dependent', timeoutMs: 30_000 },
} as const satisfies Record<string, NatKind>;

const FIRST_PORT = 1024;
const PORTS = 64_512;

interface Mapping {
  readonly port: number;
  readonly inner: Address;
  /** Unix milliseconds by remote address or endpoint to which a datagram went. */
  readonly sentTo: Map<string, number>;
  usedAt: number;
}

function keyFor(dependence: Dependence, { host, port }: Address): string {
  if (dependence === 'endpoint-independent') return '';
  return dependence === 'address-dependent' ? host : formatAddress({ host, port });
}

export class Nat {
  host: string;
  readonly kind: NatKind;
  readonly position: readonly [number, number];
  readonly inside = new Map<string, Machine>();
  readonly #random: Random;
  readonly #byInner = new Map<string, Mapping>();
  readonly #byPort = new Map<number, Mapping>();

  constructor(host: string, kind: NatKind, position: readonly [number, number], random: Random) {
    this.host = host;
    this.kind = kind;
    this.position = position;
    this.#random = random;
  }

  /** The source of a datagram from inside, as the outside sees it. */
  outbound(inner: Address, to: Address, now: number): Address {
    const { mapping: dependence, filtering } = this.kind;
    const key = `${formatAddress(inner)} ${keyFor(dependence, to)}`;
    let mapping = this.#byInner.get(key);
    if (mapping === undefined || this.#hasEnded(mapping, now)) {
      if (mapping !== undefined) this.#byPort.delete(mapping.port);
      mapping = { port: this.#freePort(now), inner, sentTo: new Map(), usedAt: now };
      this.#byInner.set(key, mapping);
      this.#byPort.set(mapping.port, mapping);
    }
    mapping.usedAt = now;
    mapping.sentTo.set(keyFor(filtering, to), now);
    return { host: this.host, port: mapping.port };
  }

  /** The inner destination of a datagram from outside; null if it is dropped. */
  inbound(port: number, from: Address, now: number): Address | null {
    const mapping = this.#byPort.get(port);
    if (mapping === undefined || this.#hasEnded(mapping, now)) return null;
    const sentAt = mapping.sentTo.get(keyFor(this.kind.filtering, from));
    return sentAt !== undefined && now - sentAt < this.kind.timeoutMs ? mapping.inner : null;
  }

  /** Forgets all mappings, as a restart does. */
  restart(): void {
    this.#byInner.clear();
    this.#byPort.clear();
  }

  #hasEnded({ usedAt }: Mapping, now: number): boolean {
    return now - usedAt >= this.kind.timeoutMs;
  }

  #freePort(now: number): number {
    for (;;) {
      const port = FIRST_PORT + this.#random.below(PORTS);
      const taken = this.#byPort.get(port);
      if (taken === undefined || this.#hasEnded(taken, now)) return port;
    }
  }
}
