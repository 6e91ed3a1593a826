/** What stands between a port of ours and the Internet, from what others see of it. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';

export interface SeenPort {
  readonly mapping: NatMapping;
  /** Where others see it; null where nobody said, or each sees it elsewhere. */
  readonly address: Address | null;
}

/**
 * What several hosts that see one port make of it. One of them alone cannot tell a cone from a symmetric translation.
 * @param seen what each of them said, at most one word of each host; null for silence
 * @param isOwn true for an address that the port has without any translation
 */
export function mappingOf(seen: readonly (Address | null)[], isOwn: (address: Address) => boolean): SeenPort {
  const words = seen.filter((address) => address !== null);
  const [first = null] = words;
  if (first === null) return { mapping: 'unknown', address: null };
  if (words.some((address) => formatAddress(address) !== formatAddress(first)))
    return { mapping: 'symmetric', address: null };
  if (words.length < 2) return { mapping: 'unknown', address: first };
  return { mapping: isOwn(first) ? 'open' : 'cone', address: first };
}

/** True where others reach a port of ours at the address that third ones see. */
export function keepsPort(mapping: NatMapping): boolean {
  return mapping !== 'symmetric';
}

/** NAT types of endpoint records. */
export const NAT_TYPE = { reachable: 1, portRestricted: 3, symmetric: 4 } as const;

/**
 * The NAT type that an endpoint record names, from what the record network has found out and what was seen of a port of
 * ours. Both look by themselves, at other times: that of the port, which is looked at again and again, goes first.
 * @param ofRecords 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric
 * @param isRefuted true where others reach the record network at our host, and our QUIC port they do not
 */
export function natTypeOf(mapping: NatMapping, ofRecords: number, isRefuted: boolean = false): number {
  const natType = isRefuted && ofRecords === NAT_TYPE.reachable ? NAT_TYPE.portRestricted : ofRecords;
  if (natType === NAT_TYPE.reachable || mapping === 'unknown') return natType;
  if (mapping === 'symmetric') return NAT_TYPE.symmetric;
  return natType === 0 || natType === NAT_TYPE.symmetric ? NAT_TYPE.portRestricted : natType;
}

/* Finds out, again and again, what stands between this node and the Internet: a laptop moves, and routers change. */

/** From one look to the next, milliseconds. */
export const NAT_LOOK_MS: number = 10 * 60_000;
/** The same where too few others have said what they see. */
export const NAT_LOOK_AGAIN_MS = 60_000;

interface NatLooksDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** False where strangers reach this node as it is, and while nothing is known of the network. */
  readonly isNeeded: () => boolean;
  readonly look: () => Promise<NatMapping>;
  readonly found: (mapping: NatMapping) => void;
}

export class NatLooks implements Component {
  readonly #deps: NatLooksDependencies;
  #looks: RepeatingTask | null = null;

  constructor(dependencies: NatLooksDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'nobody says how a port of ours is seen');
    this.#looks = every(this.#deps.clock, { periodMs: NAT_LOOK_AGAIN_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
    await this.#looks?.idle();
  }

  /** To be called when what is known of the network has changed. */
  onNetwork(): void {
    this.#looks?.soon();
  }

  async #look(): Promise<number> {
    const { isNeeded, look, found } = this.#deps;
    if (!isNeeded()) return UNTIL_REQUESTED;
    const mapping = await look();
    found(mapping);
    return mapping === 'unknown' ? NAT_LOOK_AGAIN_MS : NAT_LOOK_MS;
  }
}

/* Whom to ask how a port of ours is seen from outside. */

/** A node of the record network, and when it was last heard (Unix milliseconds). */
export interface HeardNode extends Address {
  readonly lastSeen: number;
}

/**
 * Nodes on the Internet, one of each host, the last heard first: several on one host would all see a port alike,
 * whatever stands before it, and one of our own networks does not see it from outside.
 */
export function observersAmong(nodes: readonly HeardNode[], max: number): Address[] {
  const byHost = new Map<string, Address>();
  for (const { host, port } of nodes.toSorted((a, b) => b.lastSeen - a.lastSeen)) {
    const subscriber = subscriberOf(host);
    if (ipScope(host) === IP_SCOPE.public && !byHost.has(subscriber)) byHost.set(subscriber, { host, port });
  }
  return [...byHost.values()].slice(0, max);
}
