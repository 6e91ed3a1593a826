/** Detects the NAT in front of this node from how other nodes see its ports. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import { IP_SCOPE, ipScope, subscriberOf } from '../../foundation/ip.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';

export interface ObservedPort {
  readonly mapping: NatMapping;
  /** The address that other nodes see; null if none answered or if each sees a different one. */
  readonly address: Address | null;
}

/**
 * Determines the NAT mapping of a port. One observation alone cannot distinguish a cone NAT from a symmetric NAT.
 * @param seen one observation from each of several hosts; null if a host did not answer
 * @param isOwn true for the port's own address, before any NAT
 */
export function detectMapping(seen: readonly (Address | null)[], isOwn: (address: Address) => boolean): ObservedPort {
  const answers = seen.filter((address) => address !== null);
  const [first = null] = answers;
  if (first === null) return { mapping: 'unknown', address: null };
  if (answers.some((address) => formatAddress(address) !== formatAddress(first)))
    return { mapping: 'symmetric', address: null };
  if (answers.length < 2) return { mapping: 'unknown', address: first };
  return { mapping: isOwn(first) ? 'open' : 'cone', address: first };
}

/** True if the port has the same external address for every destination. */
export function hasStablePort(mapping: NatMapping): boolean {
  return mapping !== 'symmetric';
}

/** NAT types in endpoint records. */
export const NAT_TYPE = { reachable: 1, portRestricted: 3, symmetric: 4 } as const;

/**
 * The NAT type to publish. The observed mapping of a port takes precedence over the type that the record network found,
 * because it is refreshed periodically.
 * @param ofRecords 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric
 * @param isRefuted true if strangers reach the record network's port, but not the QUIC port
 */
export function combineNatType(mapping: NatMapping, ofRecords: number, isRefuted: boolean = false): number {
  const natType = isRefuted && ofRecords === NAT_TYPE.reachable ? NAT_TYPE.portRestricted : ofRecords;
  if (natType === NAT_TYPE.reachable || mapping === 'unknown') return natType;
  if (mapping === 'symmetric') return NAT_TYPE.symmetric;
  return natType === 0 || natType === NAT_TYPE.symmetric ? NAT_TYPE.portRestricted : natType;
}

/* Detects the NAT periodically: laptops move, and routers change. */

/** Interval between detections, milliseconds. */
export const NAT_DETECTION_MS: number = 10 * 60_000;
/** Minimum and maximum interval if too few nodes answered, milliseconds. */
const MIN_DETECTION_RETRY_MS = 2_000;
export const NAT_DETECTION_RETRY_MS = 60_000;

interface NatDetectorDependencies extends NodeParts {
  /** False if strangers can reach this node, and until the record network knows. */
  readonly isNeeded: () => boolean;
  readonly detect: () => Promise<NatMapping>;
  readonly onMapping: (mapping: NatMapping) => void;
}

export class NatDetector implements Component {
  readonly #deps: NatDetectorDependencies;
  #detections: RepeatingTask | null = null;
  /** Number of consecutive detections with too few answers. */
  #failures = 0;

  constructor(dependencies: NatDetectorDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'cannot detect the NAT');
    this.#detections = every(this.#deps.clock, { periodMs: NAT_DETECTION_RETRY_MS, onError }, () => this.#detect());
  }

  async stop(): Promise<void> {
    this.#detections?.stop();
    await this.#detections?.idle();
  }

  /** Call when the reachability of this node has changed. */
  onReachability(): void {
    this.#detections?.soon();
  }

  /** Call when a node has entered the routing table. It may be the missing observer. */
  onNode(): void {
    if (this.#failures > 0) this.#detections?.soon(MIN_DETECTION_RETRY_MS);
  }

  async #detect(): Promise<number> {
    const { isNeeded, detect, onMapping } = this.#deps;
    if (!isNeeded()) return UNTIL_REQUESTED;
    const mapping = await detect();
    onMapping(mapping);
    this.#failures = mapping === 'unknown' ? this.#failures + 1 : 0;
    const pause = { firstMs: MIN_DETECTION_RETRY_MS, maxMs: NAT_DETECTION_RETRY_MS };
    return backoff(pause, this.#failures) || NAT_DETECTION_MS;
  }
}

/* Selects the nodes to ask how they see a port. */

/** A node of the record network, and when it last sent something (Unix milliseconds). */
export interface ObserverCandidate extends Address {
  readonly lastSeen: number;
}

/**
 * Public nodes, the most recently heard first. Each is on a different host, because all nodes of one host see the same
 * address. Nodes in private networks are excluded, because they do not see the port from outside.
 */
export function selectObservers(nodes: readonly ObserverCandidate[], max: number): Address[] {
  const byHost = new Map<string, Address>();
  for (const { host, port } of nodes.toSorted((a, b) => b.lastSeen - a.lastSeen)) {
    const subscriber = subscriberOf(host);
    if (ipScope(host) === IP_SCOPE.public && !byHost.has(subscriber)) byHost.set(subscriber, { host, port });
  }
  return [...byHost.values()].slice(0, max);
}
