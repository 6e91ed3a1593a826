/**
 * The helper role of a node: it reports observed addresses to other nodes, introduces them to each other, and relays.
 * It reports only addresses that it has observed, never addresses that a node claims.
 */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { RateQuota } from '../../foundation/rate-limit.ts';
import type { KnownNodes } from '../known-nodes.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import { perMinute } from './punch-guard.ts';
import type { Relay, RelayHolder, RelayOffer } from './relay.ts';
import {
  decodeHelperRequest,
  decodeIntroductionAnswer,
  encodeHelperReply,
  encodeIntroduction,
  type HelperReply,
  type HelperRequest,
  type IntroductionAnswer,
  MAX_TLS_PORTS,
} from './signals.ts';

/** Introductions for one node: rate per minute, and burst. */
export const INTRODUCTIONS_PER_NODE = 30;
/** Introductions for all strangers at one IPv4 address or IPv6 /64. */
export const INTRODUCTIONS_PER_SOURCE = 120;
/** Introductions for all strangers in one IPv4 /24 or IPv6 /48. */
export const INTRODUCTIONS_PER_NETWORK = 240;
/** Introductions for all strangers. */
export const MAX_INTRODUCTIONS = 1200;
/** Introductions to one node for all strangers. */
export const INTRODUCTIONS_TO_NODE = 60;
/** Introductions to one node for one caller, or for the strangers at one source. One call uses up to five. */
export const INTRODUCTIONS_TO_NODE_PER_SOURCE = 20;
/** Introductions to one node for the strangers in one network. */
export const INTRODUCTIONS_TO_NODE_PER_NETWORK = 30;
/**
 * Maximum number of called nodes with rates, and of callers for each. The latter exceeds the callers that the rate
 * allows.
 */
const MAX_CALLED = 1024;
const MAX_CALLERS_OF_NODE = 200;

/** Dial-backs for one node: rate per minute, and burst. Each sends three packets. */
export const DIAL_BACKS_PER_NODE = 6;
/** Dial-backs for all strangers at one IPv4 address or IPv6 /64. */
export const DIAL_BACKS_PER_SOURCE = 6;
/** Dial-backs for all strangers in one IPv4 /24 or IPv6 /48. */
export const DIAL_BACKS_PER_NETWORK = 12;
/** Dial-backs for all strangers. */
export const MAX_DIAL_BACKS = 60;

/** A node, and the source address of its QUIC packets; never the address of a relay. */
export interface ObservedNode {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
  /** The source of its connection. Default: the host of its address. */
  readonly source?: string;
}

interface HelperDependencies {
  readonly clock: Clock;
  readonly known: KnownNodes;
  /** Null if this node does not relay. */
  readonly relay: Relay | null;
  /** True if strangers can reach this node. False until this is known again after a sleep or a change of network. */
  readonly isReached: () => boolean;
  /** TCP ports at which this node lends UDP ports over TLS. */
  readonly tlsPorts: () => readonly number[];
  /** The source address of an open direct connection to a node; null if there is none. */
  readonly observedAddress: (nodeKey: Uint8Array) => Address | null;
  /** Sends a request over that connection. */
  readonly request: (nodeKey: Uint8Array, body: Uint8Array) => Promise<Uint8Array>;
  /** Dials a node; true if it proves its key at that address. */
  readonly canReach: (node: ObservedNode) => Promise<boolean>;
}

type Introduce = Extract<HelperRequest, { readonly kind: 'introduce' }>;

export class Helper {
  readonly #deps: HelperDependencies;
  readonly #introductions: RateQuota;
  /** By called node. */
  readonly #ratesByCalled = new LruCache<string, RateQuota>({ maxEntries: MAX_CALLED });
  readonly #dialBacks: RateQuota;

  constructor(dependencies: HelperDependencies) {
    this.#deps = dependencies;
    this.#introductions = new RateQuota(
      {
        perKey: perMinute(INTRODUCTIONS_PER_NODE),
        perSource: perMinute(INTRODUCTIONS_PER_SOURCE),
        perNetwork: perMinute(INTRODUCTIONS_PER_NETWORK),
        strangers: perMinute(MAX_INTRODUCTIONS),
      },
      dependencies,
    );
    this.#dialBacks = new RateQuota(
      {
        perKey: perMinute(DIAL_BACKS_PER_NODE),
        perSource: perMinute(DIAL_BACKS_PER_SOURCE),
        perNetwork: perMinute(DIAL_BACKS_PER_NETWORK),
        strangers: perMinute(MAX_DIAL_BACKS),
      },
      dependencies,
    );
  }

  /**
   * Answers a request of a node.
   * @throws SvcError `protocol_error` if the request is invalid, `rate_limited`; `access_denied` for a hello or
   *   dial-back if strangers cannot reach this node
   */
  async answer(body: Uint8Array, from: ObservedNode): Promise<Uint8Array> {
    const request = decodeHelperRequest(body);
    if (request === null) throw new SvcError('protocol_error');
    // An introduction needs only the connections of both nodes. A helper that has just slept still has them.
    if (request.kind !== 'introduce' && !this.#deps.isReached()) throw new SvcError('access_denied');
    return encodeHelperReply(await this.#answer(request, from));
  }

  async #answer(request: HelperRequest, from: ObservedNode): Promise<HelperReply> {
    switch (request.kind) {
      case 'hello':
        return { ...this.#reply(from, null, null), tlsPorts: this.#deps.tlsPorts().slice(0, MAX_TLS_PORTS) };
      case 'reach':
        return { ...this.#reply(from, null, null), reached: await this.#dialBack(request.port, from) };
      case 'introduce':
        return await this.#introduce(request, from);
    }
  }

  #reply({ address }: ObservedNode, called: HelperReply['called'], relayPort: number | null): HelperReply {
    return { seenAt: address, relays: this.#deps.relay !== null, reached: false, called, relayPort, tlsPorts: [] };
  }

  /** Dials only the requester's host. Its connection has proven that it is there. */
  async #dialBack(port: number, from: ObservedNode): Promise<boolean> {
    if (port < FIRST_MAPPED_PORT) throw new SvcError('access_denied');
    if (!this.#dialBacks.take(this.#holder(from))) throw new SvcError('rate_limited');
    return await this.#deps.canReach({ nodeKey: from.nodeKey, address: { host: from.address.host, port } });
  }

  async #introduce(request: Introduce, from: ObservedNode): Promise<HelperReply> {
    const calledAt = this.#deps.observedAddress(request.to);
    if (calledAt === null) return this.#reply(from, null, null);
    const holder = this.#holder(from);
    const isAllowed =
      this.#introductions.retryAfterMs(holder) === 0 &&
      this.#rateOfCalled(request.to).take(holder) &&
      this.#introductions.take(holder);
    if (!isAllowed) throw new SvcError('rate_limited');
    const offer = request.means === 'relay' ? this.#openRelay(from, calledAt) : null;
    try {
      const answer = await this.#sendIntroduction(request, from, offer);
      if (answer.outcome !== 'ready') offer?.cancel();
      // The called node may have changed its address meanwhile.
      const seenAt = this.#deps.observedAddress(request.to) ?? calledAt;
      return this.#reply(from, { ...answer, seenAt }, offer?.callerPort ?? null);
    } catch (error) {
      offer?.cancel();
      throw error;
    }
  }

  #holder({ nodeKey, address, source = address.host }: ObservedNode): RelayHolder {
    return { node: toHex(nodeKey), source, named: this.#deps.known.has(nodeKey) };
  }

  /** The rate of introductions to one node. */
  #rateOfCalled(called: Uint8Array): RateQuota {
    const name = toHex(called);
    const known = this.#ratesByCalled.get(name);
    if (known !== undefined) return known;
    const ofSource = perMinute(INTRODUCTIONS_TO_NODE_PER_SOURCE);
    const perNetwork = perMinute(INTRODUCTIONS_TO_NODE_PER_NETWORK);
    const strangers = perMinute(INTRODUCTIONS_TO_NODE);
    const limits = { perKey: ofSource, perSource: ofSource, perNetwork, strangers, maxKeys: MAX_CALLERS_OF_NODE };
    const rate = new RateQuota(limits, this.#deps);
    this.#ratesByCalled.set(name, rate);
    return rate;
  }

  #openRelay(caller: ObservedNode, called: Address): RelayOffer {
    const offer = this.#deps.relay?.open(caller.address.host, called.host, this.#holder(caller)) ?? null;
    if (offer === null) throw new SvcError('rate_limited');
    return offer;
  }

  async #sendIntroduction(
    request: Introduce,
    from: ObservedNode,
    offer: RelayOffer | null,
  ): Promise<IntroductionAnswer> {
    const { to, attempt, means, mapping, listensAt, needsFullHops } = request;
    const introduction = encodeIntroduction({
      caller: from.nodeKey,
      attempt,
      means,
      mapping,
      seenAt: from.address,
      listensAt,
      needsFullHops,
      relay: offer === null ? null : { port: offer.calledPort, token: offer.token },
    });
    const answer = decodeIntroductionAnswer(await this.#deps.request(to, introduction));
    if (answer === null) throw new SvcError('protocol_error');
    return answer;
  }
}
