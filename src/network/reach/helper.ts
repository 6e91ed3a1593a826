/**
 * What a node does as a helper of others: tells them what it sees of them, introduces them to each other, relays. Who
 * is seen where is always its own word, never what a node says of itself.
 */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { networkOf, subscriberOf } from '../../foundation/ip.ts';
import type { RateLimiter } from '../../foundation/rate-limit.ts';
import { FIRST_MAPPED_PORT } from '../ports.ts';
import { perMinute } from './per-minute.ts';
import type { Relay, RelayOffer } from './relay.ts';
import {
  decodeHelperRequest,
  decodeIntroductionAnswer,
  encodeHelperReply,
  encodeIntroduction,
  type HelperReply,
  type HelperRequest,
  type IntroductionAnswer,
} from './signals.ts';

/** Introductions that one node asks for in a minute, and at once. */
export const INTRODUCTIONS_PER_NODE = 30;
/** The same of all nodes of one source. */
export const INTRODUCTIONS_PER_SOURCE = 120;
/** The same of all nodes of one network (an IPv4 /24 or IPv6 /48). */
export const INTRODUCTIONS_PER_NETWORK = 240;
/** The same to one node, whoever asks. */
export const INTRODUCTIONS_TO_NODE = 60;
/** The same to one node of all of one source, which is to leave the others some: each call takes up to five. */
export const INTRODUCTIONS_OF_SOURCE_TO_NODE = 20;
/** The same to one node of all of one network. */
export const INTRODUCTIONS_OF_NETWORK_TO_NODE = 30;

/** Ports of its own that one node has dialled in a minute, and at once: three packets each. */
export const DIAL_BACKS_PER_NODE = 6;
/** The same of all nodes of one source. */
export const DIAL_BACKS_PER_SOURCE = 6;
/** The same of all nodes of one network. */
export const DIAL_BACKS_PER_NETWORK = 12;
/** The same of all together. */
export const MAX_DIAL_BACKS = 60;

/** A node, and where the packets of its QUIC connection come from: never an address of something between. */
export interface SeenNode {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
}

interface HelperDependencies {
  readonly clock: Clock;
  /** Null where this node does not relay. */
  readonly relay: Relay | null;
  /** Where a connection to a node comes from that stands already and leads straight to it; null where none does. */
  readonly seen: (nodeKey: Uint8Array) => Address | null;
  /** Sends a request over that connection. */
  readonly request: (nodeKey: Uint8Array, body: Uint8Array) => Promise<Uint8Array>;
  /** Dials a node, and says whether it has proven its key there. */
  readonly reaches: (node: SeenNode) => Promise<boolean>;
}

type Introduce = Extract<HelperRequest, { readonly kind: 'introduce' }>;

/** Rates of which each is shared by those of the same key. */
type Rates<T extends unknown[]> = readonly { readonly rate: RateLimiter; readonly of: (...about: T) => string }[];

/** Spends one of each rate, up to the first that has none left; false then. */
function take<T extends unknown[]>(rates: Rates<T>, ...about: T): boolean {
  return rates.every(({ rate, of }) => rate.take(of(...about)));
}

function nodeOf({ nodeKey }: SeenNode): string {
  return toHex(nodeKey);
}

function sourceOf({ address: { host } }: SeenNode): string {
  return subscriberOf(host);
}

function ownNetworkOf(from: SeenNode): string {
  return networkOf(from.address.host) ?? sourceOf(from);
}

export class Helper {
  readonly #deps: HelperDependencies;
  readonly #introductions: Rates<[from: SeenNode, to: string]>;
  readonly #dialBacks: Rates<[from: SeenNode]>;

  constructor(dependencies: HelperDependencies) {
    this.#deps = dependencies;
    const rate = (times: number): RateLimiter => perMinute(times, dependencies);
    this.#introductions = [
      { rate: rate(INTRODUCTIONS_PER_NODE), of: nodeOf },
      { rate: rate(INTRODUCTIONS_PER_SOURCE), of: sourceOf },
      { rate: rate(INTRODUCTIONS_PER_NETWORK), of: ownNetworkOf },
      { rate: rate(INTRODUCTIONS_OF_SOURCE_TO_NODE), of: (from, to) => `${sourceOf(from)} ${to}` },
      { rate: rate(INTRODUCTIONS_OF_NETWORK_TO_NODE), of: (from, to) => `${ownNetworkOf(from)} ${to}` },
      { rate: rate(INTRODUCTIONS_TO_NODE), of: (_, to) => to },
    ];
    this.#dialBacks = [
      { rate: rate(DIAL_BACKS_PER_NODE), of: nodeOf },
      { rate: rate(DIAL_BACKS_PER_SOURCE), of: sourceOf },
      { rate: rate(DIAL_BACKS_PER_NETWORK), of: ownNetworkOf },
      { rate: rate(MAX_DIAL_BACKS), of: () => '' },
    ];
  }

  /**
   * Answers a request of a node.
   * @throws SvcError `protocol_error` for what is no request, `rate_limited`, `access_denied`
   */
  async answer(body: Uint8Array, from: SeenNode): Promise<Uint8Array> {
    const request = decodeHelperRequest(body);
    if (request === null) throw new SvcError('protocol_error');
    return encodeHelperReply(await this.#answer(request, from));
  }

  async #answer(request: HelperRequest, from: SeenNode): Promise<HelperReply> {
    switch (request.kind) {
      case 'hello':
        return this.#reply(from, null, null);
      case 'reach':
        return { ...this.#reply(from, null, null), reached: await this.#dialBack(request.port, from) };
      case 'introduce':
        return await this.#introduce(request, from);
    }
  }

  #reply({ address }: SeenNode, called: HelperReply['called'], relayPort: number | null): HelperReply {
    return { seenAt: address, relays: this.#deps.relay !== null, reached: false, called, relayPort };
  }

  /** Never another host than that of the asker, whose connection has proven that it is there. */
  async #dialBack(port: number, from: SeenNode): Promise<boolean> {
    if (port < FIRST_MAPPED_PORT) throw new SvcError('access_denied');
    if (!take(this.#dialBacks, from)) throw new SvcError('rate_limited');
    return await this.#deps.reaches({ nodeKey: from.nodeKey, address: { host: from.address.host, port } });
  }

  async #introduce(request: Introduce, from: SeenNode): Promise<HelperReply> {
    const calledAt = this.#deps.seen(request.to);
    if (calledAt === null) return this.#reply(from, null, null);
    if (!take(this.#introductions, from, toHex(request.to))) throw new SvcError('rate_limited');
    const offer = request.means === 'relay' ? this.#openRelay(from.address, calledAt) : null;
    try {
      const answer = await this.#ask(request, from, offer);
      if (answer.outcome !== 'ready') offer?.cancel();
      // It may have come from elsewhere meanwhile.
      const seenAt = this.#deps.seen(request.to) ?? calledAt;
      return this.#reply(from, { ...answer, seenAt }, offer?.callerPort ?? null);
    } catch (error) {
      offer?.cancel();
      throw error;
    }
  }

  #openRelay(caller: Address, called: Address): RelayOffer {
    const offer = this.#deps.relay?.open(caller.host, called.host) ?? null;
    if (offer === null) throw new SvcError('rate_limited');
    return offer;
  }

  async #ask(request: Introduce, from: SeenNode, offer: RelayOffer | null): Promise<IntroductionAnswer> {
    const { to, attempt, means, mapping, listensAt, isFar } = request;
    const introduction = encodeIntroduction({
      caller: from.nodeKey,
      attempt,
      means,
      mapping,
      seenAt: from.address,
      listensAt,
      isFar,
      relay: offer === null ? null : { port: offer.calledPort, token: offer.token },
    });
    const answer = decodeIntroductionAnswer(await this.#deps.request(to, introduction));
    if (answer === null) throw new SvcError('protocol_error');
    return answer;
  }
}
