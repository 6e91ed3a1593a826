/**
 * Admits cards of other agents: rejects signatures of third parties and replaces addresses other than the agent's own.
 */
import { type CardService, type RewrittenCard, rewriteAddresses } from '../../foundation/cards/addresses.ts';
import type { Card } from '../../foundation/cards/card.ts';
import {
  type CardCheck,
  type CardProof,
  checkSignatures,
  unsigned,
  verifyCard,
} from '../../foundation/cards/signature.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { CardStore } from '../../foundation/store/cards.ts';

export interface CardAdmissionDependencies {
  readonly clock: Clock;
  readonly store: Pick<CardStore, 'seen'>;
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
