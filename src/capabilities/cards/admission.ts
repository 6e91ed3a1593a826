/** What is let in of a card that comes from another agent: nothing that another has signed, and no address but its own. */
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
  /** `issuedAt` of the newest delegation that was met of an agent, Unix seconds; 0 where none was. */
  readonly newestDelegation: (aid: Aid) => number;
  /** What an agent says that it is bound to; null where it says nothing. Never rejects. */
  readonly serviceOf: (aid: Aid, signal?: AbortSignal) => Promise<CardService | null>;
}

/** A card whose addresses lead to a place on this machine; without signatures, which fit it no more. */
export interface LocalCard extends RewrittenCard {
  /** The agent itself had signed what this was made of. */
  readonly isSigned: boolean;
}

export class CardAdmission {
  readonly #deps: CardAdmissionDependencies;

  constructor(dependencies: CardAdmissionDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Verifies that an agent vouches for a card.
   * @throws SvcError `bad_card`
   */
  verify(card: Card, aid: Aid): CardProof {
    return verifyCard(card, this.#check(aid));
  }

  /**
   * The form of a card that an agent's service shows which programs here may follow.
   * @param to where its addresses lead, such as `http://127.0.0.1:40123`
   * @throws SvcError `bad_card`
   */
  async local(card: Card, aid: Aid, to: string, signal?: AbortSignal): Promise<LocalCard> {
    const proof = checkSignatures(card, this.#check(aid));
    const service = await this.#deps.serviceOf(aid, signal);
    // A list without signatures in it stays: clients see what the server wrote.
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
