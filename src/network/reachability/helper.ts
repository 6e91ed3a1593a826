/**
 * What a node does as a helper of others: tells them what it sees of them, introduces them to each other, relays. Who
 * is seen where is always its own word, never what a node says of itself.
 */
import type { Address } from '../../foundation/address.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { QuotaHolder } from '../../foundation/quota.ts';
import { RateQuota } from '../../foundation/rate-limit.ts';
import type { KnownNodes } from '../known-nodes.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import { perMinute } from './punch-guard.ts';
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
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const INTRODUCTIONS_PER_SOURCE = 120;
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const INTRODUCTIONS_PER_NETWORK = 240;
/** The same of all strangers. */
export const MAX_INTRODUCTIONS = 1200;
/** The same to one node, by all strangers. */
export const INTRODUCTIONS_TO_NODE = 60;
/** The same to one node, by one node or by the strangers of one source: each call takes up to five. */
export const INTRODUCTIONS_OF_SOURCE_TO_NODE = 20;
/** The same to one node, by the strangers of one network. */
export const INTRODUCTIONS_OF_NETWORK_TO_NODE = 30;
/** Called nodes whose rates are remembered, and callers of each: more than can call one in a minute. */
const MAX_CALLED = 1024;
const MAX_CALLERS_OF_NODE = 200;

/** Ports of its own that one node has dialled in a minute, and at once: three packets each. */
export const DIAL_BACKS_PER_NODE = 6;
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const DIAL_BACKS_PER_SOURCE = 6;
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const DIAL_BACKS_PER_NETWORK = 12;
/** The same of all strangers. */
export const MAX_DIAL_BACKS = 60;

/** A node, and where the packets of its QUIC connection come from: never an address of something between. */
export interface SeenNode {
  readonly nodeKey: Uint8Array;
  readonly address: Address;
}

interface HelperDependencies {
  readonly clock: Clock;
  readonly known: Pick<KnownNodes, 'has'>;
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

export class Helper {
  readonly #deps: HelperDependencies;
  readonly #introductions: RateQuota;
  /** By called node. */
  readonly #toNodes = new LruCache<string, RateQuota>({ maxEntries: MAX_CALLED });
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
    if (!this.#dialBacks.take(this.#holder(from))) throw new SvcError('rate_limited');
    return await this.#deps.reaches({ nodeKey: from.nodeKey, address: { host: from.address.host, port } });
  }

  async #introduce(request: Introduce, from: SeenNode): Promise<HelperReply> {
    const calledAt = this.#deps.seen(request.to);
    if (calledAt === null) return this.#reply(from, null, null);
    const holder = this.#holder(from);
    const isAllowed =
      this.#introductions.retryAfterMs(holder) === 0 &&
      this.#rateTo(request.to).take(holder) &&
      this.#introductions.take(holder);
    if (!isAllowed) throw new SvcError('rate_limited');
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

  #holder({ nodeKey, address }: SeenNode): QuotaHolder {
    return { node: toHex(nodeKey), source: address.host, named: this.#deps.known.has(nodeKey) };
  }

  /** The rate at which one node is called. */
  #rateTo(called: Uint8Array): RateQuota {
    const name = toHex(called);
    const known = this.#toNodes.get(name);
    if (known !== undefined) return known;
    const ofSource = perMinute(INTRODUCTIONS_OF_SOURCE_TO_NODE);
    const perNetwork = perMinute(INTRODUCTIONS_OF_NETWORK_TO_NODE);
    const strangers = perMinute(INTRODUCTIONS_TO_NODE);
    const limits = { perKey: ofSource, perSource: ofSource, perNetwork, strangers, maxKeys: MAX_CALLERS_OF_NODE };
    const rate = new RateQuota(limits, this.#deps);
    this.#toNodes.set(name, rate);
    return rate;
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
