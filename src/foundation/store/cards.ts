/** Signed cards: the cards of local agents, and the newest known card of each other agent. */
import type { Aid } from '../identity/aid.ts';
import { aidFromRow } from './row.ts';
import type { Store } from './store.ts';
import { aid, integer, type RowOf, Table, text } from './table.ts';

/** Cached cards of other agents. The least recently seen are evicted first. */
export const MAX_SEEN_CARDS = 500;

/** `signedAt` of a local agent's card that is not yet signed with its current key. */
export const UNSIGNED = 0;

const CARD = new Table('own_cards', {
  aid,
  /** The signed card, JSON. */
  card: text,
  objectId: text,
  /** Unix seconds. */
  signedAt: integer,
});
/** `seenAt` in Unix milliseconds. */
const SEEN_CARD = new Table('seen_cards', { ...CARD.columns, seenAt: integer });

export type StoredCard = Omit<RowOf<typeof CARD>, 'aid'>;

export class CardStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The card of a local agent; null if it has none. */
  own(aid: Aid): StoredCard | null {
    return CARD.one(this.#store)`WHERE aid = ${aid}`;
  }

  /** The local agents that have a card. */
  owners(): Aid[] {
    return this.#store.all('SELECT aid FROM own_cards ORDER BY aid').map((row) => aidFromRow(row, 'aid'));
  }

  putOwn(aid: Aid, card: StoredCard): void {
    CARD.replace(this.#store, { ...card, aid });
  }

  deleteOwn(aid: Aid): void {
    this.#store.run`DELETE FROM own_cards WHERE aid = ${aid}`;
  }

  /** The newest known card of another agent; null if none is known. */
  seen(aid: Aid): StoredCard | null {
    return SEEN_CARD.one(this.#store)`WHERE aid = ${aid}`;
  }

  /** @param now Unix milliseconds */
  putSeen(aid: Aid, card: StoredCard, now: number): void {
    this.#store.transaction(() => {
      SEEN_CARD.replace(this.#store, { ...card, aid, seenAt: now });
      this.#store.run`
        DELETE FROM seen_cards WHERE aid IN
          (SELECT aid FROM seen_cards ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_SEEN_CARDS})`;
    });
  }
}
