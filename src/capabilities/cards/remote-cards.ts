/** The signed cards of other agents: found by their profiles, verified, and remembered for when their nodes are away. */
import type { Card, CardKind } from '../../foundation/cards/card.ts';
import { cardKind, readCard } from '../../foundation/cards/card.ts';
import type { CardProof } from '../../foundation/cards/signature.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { CardStore } from '../../foundation/store/cards.ts';
import type { CardAdmission } from './admission.ts';

/** A card for which its agent vouches. */
export interface FoundCard {
  readonly aid: Aid;
  readonly card: Card;
  readonly kind: CardKind;
  readonly objectId: string;
  /** Unix seconds. */
  readonly signedAt: number;
  /** When the delegation ends by which its key acts, Unix seconds; 0: never. */
  readonly expiresAt: number;
  /** False where nobody could be asked whether the agent has another one by now. */
  readonly isCurrent: boolean;
}

/** What an agent says of its card; `objectId` is null where it has none. */
export interface NamedCard {
  readonly objectId: string | null;
}

export interface RemoteCardsDependencies {
  readonly clock: Clock;
  readonly store: Pick<CardStore, 'seen' | 'putSeen'>;
  readonly admission: Pick<CardAdmission, 'verify'>;
  /** The card of an agent here; null for others. */
  readonly own: (aid: Aid) => Pick<FoundCard, 'card' | 'objectId'> | null;
  /** What the profile of an agent names, on the network; null where no profile is there. @throws SvcError `cancelled` */
  readonly named: (aid: Aid, signal: AbortSignal) => Promise<NamedCard | null>;
  /** The bytes of an object of an agent, which are those of its id. */
  readonly read: (request: {
    readonly local: Aid;
    readonly holder: Aid;
    readonly objectId: string;
    readonly signal: AbortSignal;
  }) => Promise<Uint8Array>;
}

/** Failures to reach an agent, where what is remembered of it is better than nothing. */
const AWAY: ReadonlySet<string> = new Set([
  'connect_failed',
  'resolve_failed',
  'network_unavailable',
  'clock_wrong',
  'timeout',
  'rate_limited',
  'protocol_error',
]);

function noCard(aid: Aid): SvcError {
  return new SvcError('not_found', { thing: 'card', message: 'This agent shows no card.', details: { aid } });
}

export class RemoteCards {
  readonly #deps: RemoteCardsDependencies;

  constructor(dependencies: RemoteCardsDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The card of an agent.
   * @param local the identity here that asks for it
   * @throws SvcError `not_found`, `bad_card`, `access_denied`, `cancelled`, and why the agent could not be reached
   */
  async get(aid: Aid, local: Aid, signal: AbortSignal): Promise<FoundCard> {
    const own = this.#deps.own(aid);
    if (own !== null)
      return { ...found(aid, own.card, own.objectId, this.#deps.admission.verify(own.card, aid)), isCurrent: true };
    const named = await this.#deps.named(aid, signal);
    const remembered = this.#deps.store.seen(aid);
    if (named === null) return this.#remembered(aid, false);
    if (named.objectId === null) throw noCard(aid);
    if (named.objectId === remembered?.objectId) return this.#remembered(aid, true);
    try {
      return await this.#fetch(aid, local, named.objectId, signal);
    } catch (error) {
      if (remembered === null || !(error instanceof SvcError) || !AWAY.has(error.code)) throw error;
      return this.#remembered(aid, false);
    }
  }

  /** A card that is remembered, as far as its agent still vouches for it. @throws SvcError `not_found`, `bad_card` */
  #remembered(aid: Aid, isCurrent: boolean): FoundCard {
    const stored = this.#deps.store.seen(aid);
    if (stored === null) throw noCard(aid);
    const card = readCard(Buffer.from(stored.card));
    const proof = this.#deps.admission.verify(card, aid);
    return { ...found(aid, card, stored.objectId, proof), isCurrent };
  }

  async #fetch(aid: Aid, local: Aid, objectId: string, signal: AbortSignal): Promise<FoundCard> {
    const { store, clock, admission, read } = this.#deps;
    const bytes = await read({ local, holder: aid, objectId, signal });
    const card = readCard(bytes);
    const proof = admission.verify(card, aid);
    const text = Buffer.from(bytes).toString('utf8');
    store.putSeen(aid, { card: text, objectId, signedAt: proof.signedAt }, clock.now());
    return { ...found(aid, card, objectId, proof), isCurrent: true };
  }
}

function found(aid: Aid, card: Card, objectId: string, { signedAt, delegation }: CardProof) {
  return { aid, card, kind: cardKind(card) ?? 'a2a', objectId, signedAt, expiresAt: delegation.expiresAt } as const;
}
