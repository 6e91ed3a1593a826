/**
 * Opens UDP ports, detects their external addresses, opens the NAT filter for expected peers, and lends the ports to
 * the QUIC engine.
 */

import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { HostCheck } from '../records/own-hosts.ts';
import { type LentPort, type LentPortOptions, PortTaken } from '../transport/engine-connection.ts';
import type { BorrowedPort } from '../transport/udp-socket.ts';
import { detectMapping, type ObservedPort } from './nat.ts';
import { OPENING_HOPS, sendOpening } from './opening.ts';

/** Maximum number of nodes to ask for a port's external address. */
export const MAX_OBSERVERS = 4;
/** Number of answers to wait for. Two are enough to detect a symmetric NAT. */
export const REQUIRED_OBSERVATIONS = 2;
/** How long to wait for the answers, milliseconds. */
export const OBSERVE_TIMEOUT_MS = 2_000;
/** Number of attempts to join a relay, and the timeout of each, milliseconds. */
const JOIN_ATTEMPTS = 8;
const JOIN_TIMEOUT_MS = 250;

/** Number of tokens to send to a relaying helper without waiting for an answer, because packets get lost. */
const JOIN_PACKETS = 3;
/** Ports that are tried if other programs take them between the two binds. */
const MAX_PORTS = 3;

/** A UDP port that the record network does not use. */
export interface OpenedPort {
  readonly port: number;
  seenBy(node: Address): Promise<Address | null>;
  send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void>;
  waitForDatagram(expected: Uint8Array, from: Address, signal: AbortSignal): Promise<boolean>;
  /** As `UdpSocket.handOver`. */
  handOver(): BorrowedPort | null;
  close(): Promise<void>;
}

interface PortLenderDependencies extends HostCheck {
  readonly clock: Clock;
  /** Lets the QUIC engine listen on a port. @throws SvcError `connect_failed`; `PortTaken` */
  readonly listen: (options: LentPortOptions) => LentPort;
  readonly openPort: (family: 4 | 6) => OpenedPort;
  /** Public nodes of the record network, each on a different host, in order of preference. */
  readonly observers: () => readonly Address[];
  /**
   * When the newest of the connections to the helpers was opened, Unix milliseconds. The NAT has not changed since,
   * because connections do not migrate to another address. Infinity if there are no helpers.
   */
  readonly natUnchangedSince: () => number;
}

export interface LendResult {
  /** The external address of the port. */
  readonly address: Address;
  readonly port: LentPort;
}

interface LendOptions {
  /** The key of the peer that will dial. Other nodes are rejected. */
  readonly expectedKey: Uint8Array;
  /** The addresses to open the filter for: one address, or random ports of one host. */
  readonly targets: readonly Address[];
  /** True if the opening packets need the full hop limit. */
  readonly needsFullHops: boolean;
  /** This node's public IPv6 address, for a path over IPv6; null for IPv4. */
  readonly ownIpv6: string | null;
}

/** The first `enough` answers, or fewer if the rest failed or the time is up. */
async function firstAnswers<T>(
  answers: readonly Promise<T | null>[],
  enough: number,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const pending = answers.map(async (answer) => {
    const value = await answer;
    if (value !== null) found.push(value);
    if (found.length >= enough) resolve();
  });
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([promise, Promise.allSettled(pending)]);
  return found.slice(0, enough);
}

export class PortLender {
  readonly #deps: PortLenderDependencies;
  readonly #lent = new Set<LentPort>();
  #isStopped = false;
  #mapping: NatMapping = 'unknown';
  /** The external host, and when it was observed, if the last observed port had the same number externally. */
  #portPreservation: { readonly host: string; readonly at: number } | null = null;

  constructor(dependencies: PortLenderDependencies) {
    this.#deps = dependencies;
  }

  /** The last detected NAT mapping. */
  get mapping(): NatMapping {
    return this.#mapping;
  }

  /** Detects the NAT mapping with a new port. */
  async detectMapping(): Promise<NatMapping> {
    const port = this.#deps.openPort(4);
    try {
      return (await this.#observe(port, REQUIRED_OBSERVATIONS)).mapping;
    } finally {
      await port.close();
    }
  }

  /**
   * Lends a port to the engine. Let the peer dial only after this has settled: a packet that arrives before the filter
   * is open is lost, which costs the peer a retransmission of one second.
   * @throws SvcError `connect_failed` if no node answered, if each sees a different address, or if the system has no port
   */
  lend(options: LendOptions): Promise<LendResult> {
    return withAnotherPort(() => this.#lend(options));
  }

  async #lend({ expectedKey, targets, needsFullHops, ownIpv6 }: LendOptions): Promise<LendResult> {
    const family = ownIpv6 === null ? 4 : 6;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    let address: Address | null = ownIpv6 === null ? null : { host: ownIpv6, port };
    let via: BorrowedPort | null = null;
    try {
      // If the NAT maps a port to the same address for all destinations, one answer is enough.
      const isKnown = this.#mapping === 'open' || this.#mapping === 'cone';
      // If it also preserves port numbers, no answer is needed. If this port is an exception, the peer asks again.
      const known = isKnown && !needsFullHops && targets.length === 1 ? this.#preservedPort(port) : null;
      if (known !== null && address === null) detach(this.#redetectMapping());
      address ??= known;
      address ??= (await this.#observe(opened, isKnown ? 1 : REQUIRED_OBSERVATIONS)).address;
      if (address !== null) {
        await sendOpening(opened, targets, needsFullHops ? null : OPENING_HOPS);
        via = opened.handOver();
      }
    } finally {
      await opened.close();
    }
    if (address === null)
      throw new SvcError('connect_failed', { message: 'Cannot determine the external address of a port.' });
    return { address, port: this.#listen(family, port, expectedKey, via) };
  }

  /**
   * Lends a port to the engine, for datagrams that a relay forwards.
   * @param token identifies this node to the relay
   * @throws SvcError `connect_failed` if the relay does not answer
   */
  async lendAtRelay(relay: Address, token: Uint8Array, expectedKey: Uint8Array): Promise<LentPort> {
    const family = relay.host.includes(':') ? 6 : 4;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    let isJoined = false;
    let via: BorrowedPort | null = null;
    try {
      for (let i = 0; i < JOIN_ATTEMPTS && !isJoined; i++) {
        using limit = awakeTimeout(this.#deps.clock, JOIN_TIMEOUT_MS);
        const answer = opened.waitForDatagram(token, relay, limit.signal);
        await opened.send(token, relay);
        isJoined = await answer;
      }
      if (isJoined) via = opened.handOver();
    } finally {
      await opened.close();
    }
    if (!isJoined) throw new SvcError('connect_failed', { message: 'The relay does not answer.' });
    return this.#listen(family, port, expectedKey, via);
  }

  /**
   * Lends a port for a relay at a helper that has announced that it relays. Not waiting for its answer saves a round
   * trip. If the packets get lost, the caller continues with the next helper.
   */
  async lendToHelperRelay(relay: Address, token: Uint8Array, expectedKey: Uint8Array): Promise<LentPort> {
    const family = relay.host.includes(':') ? 6 : 4;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    let via: BorrowedPort | null = null;
    try {
      for (let i = 0; i < JOIN_PACKETS; i++) await opened.send(token, relay);
      via = opened.handOver();
    } finally {
      await opened.close();
    }
    return this.#listen(family, port, expectedKey, via);
  }

  /** Lends a loopback port to the engine, for datagrams that a local forwarder receives. */
  lendLocally(expectedKey: Uint8Array): Promise<LentPort> {
    return withAnotherPort(async () => {
      const opened = this.#deps.openPort(4);
      const { port } = opened;
      await opened.close();
      return this.#listen(4, port, expectedKey, null, '127.0.0.1');
    });
  }

  /** Closes the ports that are not connected. Ports that are still being opened are not lent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#lent].map((port) => port.close()));
  }

  /** The port just lent was not verified. Verifies a new port, so that the next call notices a change of the NAT. */
  async #redetectMapping(): Promise<void> {
    await this.detectMapping().catch(() => {
      this.#portPreservation = null;
    });
  }

  /** The assumed external address of a port; null if the NAT may not preserve port numbers. */
  #preservedPort(port: number): Address | null {
    const seen = this.#portPreservation;
    if (seen === null || seen.at < this.#deps.natUnchangedSince()) return null;
    return { host: seen.host, port };
  }

  #listen(
    family: 4 | 6,
    port: number,
    expectedKey: Uint8Array,
    via: BorrowedPort | null,
    host: string | null = null,
  ): LentPort {
    if (this.#isStopped) {
      via?.close();
      throw new SvcError('cancelled');
    }
    // Packets of a borrowed port arrive from this machine.
    const where = host ?? (via !== null ? '127.0.0.1' : family === 4 ? '0.0.0.0' : '::');
    const lent = this.#deps.listen({ host: where, port, expectedKey, ...(via === null ? {} : { via }) });
    this.#lent.add(lent);
    detach(lent.ended.then(() => this.#lent.delete(lent)));
    return lent;
  }

  async #observe(opened: OpenedPort, enough: number): Promise<ObservedPort> {
    const { clock, observers, isOwnHost } = this.#deps;
    const at = clock.now();
    using limit = awakeTimeout(clock, OBSERVE_TIMEOUT_MS);
    const answers = observers()
      .slice(0, MAX_OBSERVERS)
      .map((node) => opened.seenBy(node));
    const { port } = opened;
    const isOwn = (address: Address): boolean => address.port === port && isOwnHost(address.host);
    const seen = detectMapping(await firstAnswers(answers, enough, limit.signal), isOwn);
    if (seen.mapping !== 'unknown') this.#mapping = seen.mapping;
    this.#portPreservation = seen.address?.port === port ? { host: seen.address.host, at } : null;
    return seen;
  }
}

/** Lends a port. The port is free for a moment before the engine binds it, so another program may take it. */
async function withAnotherPort<T>(lend: () => Promise<T>): Promise<T> {
  for (let left = MAX_PORTS - 1; ; left--) {
    try {
      return await lend();
    } catch (error) {
      if (left === 0 || !(error instanceof PortTaken)) throw error;
    }
  }
}
