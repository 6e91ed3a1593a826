/**
 * The signed cards of other agents: found through their profiles, verified, and cached for the time that their nodes
 * are unreachable.
 */
import { type CardService, type RewrittenCard, rewriteAddresses } from '../../foundation/cards/addresses.ts';
import { type Card, type CardKind, cardKind, readCard } from '../../foundation/cards/card.ts';
import {
  type CardCheck,
  type CardProof,
  checkSignatures,
  unsigned,
  verifyCard,
} from '../../foundation/cards/signature.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { CardStore } from '../../foundation/store/cards.ts';

/** A card that its agent signed. */
export interface FoundCard {
  readonly aid: Aid;
  readonly card: Card;
  readonly kind: CardKind;
  readonly objectId: string;
  /** Unix seconds. */
  readonly signedAt: number;
  /** Expiry of the delegation of the signing key, Unix seconds; 0: never. */
  readonly expiresAt: number;
  /** False if a newer card may exist because the network could not be queried. */
  readonly isCurrent: boolean;
}

/** The card in an agent's profile; `objectId` is null if the profile names none. */
export interface ProfileCard {
  readonly objectId: string | null;
}

export interface RemoteCardsDependencies {
  readonly clock: Clock;
  readonly store: CardStore;
  readonly admission: CardAdmission;
  /** The card of a local agent; null for other agents. */
  readonly own: (aid: Aid) => Pick<FoundCard, 'card' | 'objectId'> | null;
  /** Looks up an agent's profile in the network; null if there is no profile. @throws SvcError `cancelled` */
  readonly profileCard: (aid: Aid, signal: AbortSignal) => Promise<ProfileCard | null>;
  /** Reads an object of an agent and verifies it against its ID. */
  readonly read: (request: {
    readonly local: Aid;
    readonly holder: Aid;
    readonly objectId: string;
    readonly signal: AbortSignal;
  }) => Promise<Uint8Array>;
}

/** Failures to reach an agent, after which the cached card is used. */
const UNREACHABLE_CODES: ReadonlySet<string> = new Set([
  'connect_failed',
  'resolve_failed',
  'network_unavailable',
  'clock_wrong',
  'timeout',
  'rate_limited',
  'protocol_error',
]);

function noCard(aid: Aid): SvcError {
  return new SvcError('not_found', { thing: 'card', message: 'This agent publishes no card.', details: { aid } });
}

export class RemoteCards {
  readonly #deps: RemoteCardsDependencies;

  constructor(dependencies: RemoteCardsDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The card of an agent.
   * @param local the local identity that requests it
   * @throws SvcError `not_found`, `bad_card`, `access_denied`, `cancelled`, and errors of reaching the agent
   */
  async get(aid: Aid, local: Aid, signal: AbortSignal): Promise<FoundCard> {
    const own = this.#deps.own(aid);
    if (own !== null)
      return {
        ...toFoundCard(aid, own.card, own.objectId, this.#deps.admission.verify(own.card, aid)),
        isCurrent: true,
      };
    const named = await this.#deps.profileCard(aid, signal);
    const cached = this.#deps.store.seen(aid);
    if (named === null) return this.#cached(aid, false);
    if (named.objectId === null) throw noCard(aid);
    if (named.objectId === cached?.objectId) return this.#cached(aid, true);
    try {
      return await this.#fetch(aid, local, named.objectId, signal);
    } catch (error) {
      if (cached === null || !(error instanceof SvcError) || !UNREACHABLE_CODES.has(error.code)) throw error;
      return this.#cached(aid, false);
    }
  }

  /** The cached card, if its signature is still valid. @throws SvcError `not_found`, `bad_card` */
  #cached(aid: Aid, isCurrent: boolean): FoundCard {
    const stored = this.#deps.store.seen(aid);
    if (stored === null) throw noCard(aid);
    const card = readCard(Buffer.from(stored.card));
    const proof = this.#deps.admission.verify(card, aid);
    return { ...toFoundCard(aid, card, stored.objectId, proof), isCurrent };
  }

  async #fetch(aid: Aid, local: Aid, objectId: string, signal: AbortSignal): Promise<FoundCard> {
    const { store, clock, admission, read } = this.#deps;
    const bytes = await read({ local, holder: aid, objectId, signal });
    const card = readCard(bytes);
    const proof = admission.verify(card, aid);
    const text = Buffer.from(bytes).toString('utf8');
    store.putSeen(aid, { card: text, objectId, signedAt: proof.signedAt }, clock.now());
    return { ...toFoundCard(aid, card, objectId, proof), isCurrent: true };
  }
}

function toFoundCard(aid: Aid, card: Card, objectId: string, { signedAt, delegation }: CardProof) {
  return { aid, card, kind: cardKind(card) ?? 'a2a', objectId, signedAt, expiresAt: delegation.expiresAt } as const;
}

// Admits cards of other agents: rejects signatures of third parties and replaces addresses other than the agent's own.

export interface CardAdmissionDependencies {
  readonly clock: Clock;
  readonly store: CardStore;
  readonly verifyDelegation: CardCheck['verifyDelegation'];
  /** `issuedAt` of the newest known delegation of an agent, Unix seconds; 0 if none is known. */
  readonly newestDelegation: (aid: Aid) => number;
  /** The service that an agent states in its profile; null if it states none. Never rejects. */
  readonly serviceOf: (aid: Aid, signal?: AbortSignal) => Promise<CardService | null>;
}

/** A card with addresses on this machine. It has no signatures, because they do not match the changed addresses. */
export interface LocalCard extends RewrittenCard {
  /** The original card was signed by the agent. */
  readonly isSigned: boolean;
}

export class CardAdmission {
  readonly #deps: CardAdmissionDependencies;

  constructor(dependencies: CardAdmissionDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Verifies that a card is signed by its agent.
   * @throws SvcError `bad_card`
   */
  verify(card: Card, aid: Aid): CardProof {
    return verifyCard(card, this.#check(aid));
  }

  /**
   * Rewrites a card of an agent's service for programs on this machine.
   * @param to the base of the new addresses, such as `http://127.0.0.1:40123`
   * @throws SvcError `bad_card`
   */
  async toLocalCard(card: Card, aid: Aid, to: string, signal?: AbortSignal): Promise<LocalCard> {
    const proof = checkSignatures(card, this.#check(aid));
    const service = await this.#deps.serviceOf(aid, signal);
    // An empty list of signatures is kept, so clients see the document that the server wrote.
    const isBare = Array.isArray(card['signatures']) && card['signatures'].length === 0;
    return { ...rewriteAddresses(isBare ? card : unsigned(card), { aid, service, to }), isSigned: proof !== null };
  }

  #check(aid: Aid): CardCheck {
    const { clock, store, verifyDelegation, newestDelegation } = this.#deps;
    return {
      aid,
      now: unixSeconds(clock),
      newestDelegation: newestDelegation(aid),
      newestCard: store.seen(aid)?.signedAt ?? 0,
      verifyDelegation,
    };
  }
}
