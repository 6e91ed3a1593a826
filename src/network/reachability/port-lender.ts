/** Opens a port, learns how it is seen, opens the way for those who will come, and lends it to the QUIC engine. */
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { EndpointParts } from '../transport/quic/native-endpoint.ts';
import { LentPort } from './lent-port.ts';
import { detectMapping, type ObservedPort } from './nat.ts';
import { OPENING_HOPS, sendOpening } from './opening.ts';

/** Nodes that are asked how they see a port. */
export const OBSERVERS = 4;
/** So many answers are enough: two tell whether each sees another port. */
export const ENOUGH_OBSERVERS = 2;
/** How long their answers are waited for, milliseconds. */
export const OBSERVE_TIMEOUT_MS = 2_000;
/** How often a relay is told the token until it answers, and how long each time, milliseconds. */
const JOIN_TRIES = 8;
const JOIN_TRY_MS = 250;

/** How often a helper that relays is told the token, without waiting for an answer: packets get lost. */
const JOIN_PACKETS = 3;

/** A UDP port of ours beside those of the DHT. */
export interface OpenedPort {
  readonly port: number;
  seenBy(node: Address): Promise<Address | null>;
  send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void>;
  received(expected: Uint8Array, from: Address, signal: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
}

interface PortLenderDependencies {
  readonly clock: Clock;
  readonly parts: () => EndpointParts;
  readonly openPort: (family: 4 | 6) => OpenedPort;
  /** Public nodes of the DHT, each on another host; the best known first. */
  readonly observers: () => readonly Address[];
  /** True for an IP address of this machine. */
  readonly isOwnHost: (host: string) => boolean;
  /**
   * Since when all connections to our helpers have stood, milliseconds since the Unix epoch: for so long nothing has
   * changed before us, as none is carried to another address. Infinite where there is none.
   */
  readonly unchangedSince: () => number;
}

export interface Lent {
  /** Where others reach the port. */
  readonly address: Address;
  readonly port: LentPort;
}

interface LendOptions {
  /** Who will dial, and is let in. */
  readonly expectedKey: Uint8Array;
  /** What the filter is opened for: one address, or random ports of one host. */
  readonly targets: readonly Address[];
  /** True where the packets that open it have to go all the way. */
  readonly isFar: boolean;
  /** Our IPv6 address, which nobody translates, for a way over IPv6; null for IPv4. */
  readonly ownIpv6: string | null;
}

/** The first answers of several: settles once there are enough, or no more come. */
async function firstOf<T>(answers: readonly Promise<T | null>[], enough: number, signal: AbortSignal): Promise<T[]> {
  const found: T[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const each = answers.map(async (answer) => {
    const word = await answer;
    if (word !== null) found.push(word);
    if (found.length >= enough) resolve();
  });
  signal.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([promise, Promise.allSettled(each)]);
  return found.slice(0, enough);
}

export class PortLender {
  readonly #deps: PortLenderDependencies;
  readonly #lent = new Set<LentPort>();
  #mapping: NatMapping = 'unknown';
  /** Our host as others see it, and when it was seen, where the port that was seen last had its own number there too. */
  #portKeeping: { readonly host: string; readonly at: number } | null = null;

  constructor(dependencies: PortLenderDependencies) {
    this.#deps = dependencies;
  }

  /** What stands before us, as was last found out. */
  get mapping(): NatMapping {
    return this.#mapping;
  }

  /** Finds out what stands before us, by a fresh port. */
  async look(): Promise<NatMapping> {
    const port = this.#deps.openPort(4);
    try {
      return (await this.#observe(port, ENOUGH_OBSERVERS)).mapping;
    } finally {
      await port.close();
    }
  }

  /**
   * Lends a port to the engine. Whoever is to dial is told so only when this has settled: a packet that comes too early
   * is lost, and with it a second.
   * @throws SvcError `connect_failed` where nobody says how the port is seen, or each sees another one
   */
  async lend({ expectedKey, targets, isFar, ownIpv6 }: LendOptions): Promise<Lent> {
    const family = ownIpv6 === null ? 4 : 6;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    let address: Address | null = ownIpv6 === null ? null : { host: ownIpv6, port };
    try {
      // Where it is known that all see a port alike, the first word will do.
      const isKnown = this.#mapping === 'open' || this.#mapping === 'cone';
      // And none is waited for where ports keep their numbers. If this one does not, the dialler asks again.
      const known = isKnown && !isFar && targets.length === 1 ? this.#keptPort(port) : null;
      if (known !== null && address === null) detach(this.#lookAgain());
      address ??= known;
      address ??= (await this.#observe(opened, isKnown ? 1 : ENOUGH_OBSERVERS)).address;
      if (address !== null) await sendOpening(opened, targets, isFar ? null : OPENING_HOPS);
    } finally {
      await opened.close();
    }
    if (address === null)
      throw new SvcError('connect_failed', { message: 'No port of this node is seen by others at one address.' });
    return { address, port: this.#listen(family, port, expectedKey) };
  }

  /**
   * Lends a port to the engine that a relay hands datagrams to.
   * @param token shows the relay that the port is for us
   * @throws SvcError `connect_failed` where the relay does not answer
   */
  async lendAtRelay(relay: Address, token: Uint8Array, expectedKey: Uint8Array): Promise<LentPort> {
    const family = relay.host.includes(':') ? 6 : 4;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    let isJoined = false;
    try {
      for (let i = 0; i < JOIN_TRIES && !isJoined; i++) {
        using limit = awakeTimeout(this.#deps.clock, JOIN_TRY_MS);
        const answer = opened.received(token, relay, limit.signal);
        await opened.send(token, relay);
        isJoined = await answer;
      }
    } finally {
      await opened.close();
    }
    if (!isJoined) throw new SvcError('connect_failed', { message: 'The relay does not answer.' });
    return this.#listen(family, port, expectedKey);
  }

  /**
   * The same where the relay is a helper, whose word is that it relays: its answer is not waited for, which would take a
   * round trip. Where nothing of this arrives, the dialler goes on to the next helper.
   */
  async lendTowardsRelay(relay: Address, token: Uint8Array, expectedKey: Uint8Array): Promise<LentPort> {
    const family = relay.host.includes(':') ? 6 : 4;
    const opened = this.#deps.openPort(family);
    const { port } = opened;
    try {
      for (let i = 0; i < JOIN_PACKETS; i++) await opened.send(token, relay);
    } finally {
      await opened.close();
    }
    return this.#listen(family, port, expectedKey);
  }

  /** Lends a port to the engine to which somebody on this machine hands what comes from afar. */
  async lendLocally(expectedKey: Uint8Array): Promise<LentPort> {
    const opened = this.#deps.openPort(4);
    const { port } = opened;
    await opened.close();
    return this.#listen(4, port, expectedKey, '127.0.0.1');
  }

  /** Gives up the ports to which nobody has come. */
  async stop(): Promise<void> {
    await Promise.all([...this.#lent].map((port) => port.close()));
  }

  /** Nobody has said where the port was seen that was just lent: the next one is, where things have changed. */
  async #lookAgain(): Promise<void> {
    await this.look().catch(() => {
      this.#portKeeping = null;
    });
  }

  /** Where others see a port of ours that nobody was asked about; null where that is not known. */
  #keptPort(port: number): Address | null {
    const seen = this.#portKeeping;
    if (seen === null || seen.at < this.#deps.unchangedSince()) return null;
    return { host: seen.host, port };
  }

  #listen(family: 4 | 6, port: number, expectedKey: Uint8Array, host?: string): LentPort {
    const lent = new LentPort(
      { host: host ?? (family === 4 ? '0.0.0.0' : '::'), port, expectedKey },
      this.#deps.parts(),
      this.#deps.clock,
    );
    this.#lent.add(lent);
    detach(lent.settled.then(() => this.#lent.delete(lent)));
    return lent;
  }

  async #observe(opened: OpenedPort, enough: number): Promise<ObservedPort> {
    const { clock, observers, isOwnHost } = this.#deps;
    const at = clock.now();
    using limit = awakeTimeout(clock, OBSERVE_TIMEOUT_MS);
    const answers = observers()
      .slice(0, OBSERVERS)
      .map((node) => opened.seenBy(node));
    const { port } = opened;
    const isOwn = (address: Address): boolean => address.port === port && isOwnHost(address.host);
    const seen = detectMapping(await firstOf(answers, enough, limit.signal), isOwn);
    if (seen.mapping !== 'unknown') this.#mapping = seen.mapping;
    this.#portKeeping = seen.address?.port === port ? { host: seen.address.host, at } : null;
    return seen;
  }
}
