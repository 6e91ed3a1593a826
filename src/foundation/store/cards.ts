/** Signed cards: the cards of local agents, and the newest known card of each other agent. */
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, integerOf, textOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** Cached cards of other agents. The least recently seen are evicted first. */
export const MAX_SEEN_CARDS = 500;

/** `signedAt` of a local agent's card that is not yet signed with its current key. */
export const UNSIGNED = 0;

export type StoredCard = Readonly<ReturnType<typeof fromRow>>;

function fromRow(row: Row) {
  return {
    /** The signed card, JSON. */
    card: textOf(row, 'card'),
    objectId: textOf(row, 'object_id'),
    /** Unix seconds. */
    signedAt: integerOf(row, 'signed_at'),
  };
}

export class CardStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The card of a local agent; null if it has none. */
  own(aid: Aid): StoredCard | null {
    const row = this.#store.one`SELECT card, object_id, signed_at FROM own_cards WHERE aid = ${aid}`;
    return row === undefined ? null : fromRow(row);
  }

  /** The local agents that have a card. */
  owners(): Aid[] {
    return this.#store.all('SELECT aid FROM own_cards ORDER BY aid').map((row) => aidFromRow(row, 'aid'));
  }

  putOwn(aid: Aid, { card, objectId, signedAt }: StoredCard): void {
    this.#store.run`
      INSERT OR REPLACE INTO own_cards (aid, card, object_id, signed_at)
      VALUES (${aid}, ${card}, ${objectId}, ${signedAt})`;
  }

  deleteOwn(aid: Aid): void {
    this.#store.run`DELETE FROM own_cards WHERE aid = ${aid}`;
  }

  /** The newest known card of another agent; null if none is known. */
  seen(aid: Aid): StoredCard | null {
    const row = this.#store.one`SELECT card, object_id, signed_at FROM seen_cards WHERE aid = ${aid}`;
    return row === undefined ? null : fromRow(row);
  }

  /** @param now Unix milliseconds */
  putSeen(aid: Aid, { card, objectId, signedAt }: StoredCard, now: number): void {
    this.#store.transaction(() => {
      this.#store.run`
        INSERT OR REPLACE INTO seen_cards (aid, card, object_id, signed_at, seen_at)
        VALUES (${aid}, ${card}, ${objectId}, ${signedAt}, ${now})`;
      this.#store.run`
        DELETE FROM seen_cards WHERE aid IN
          (SELECT aid FROM seen_cards ORDER BY seen_at DESC LIMIT -1 OFFSET ${MAX_SEEN_CARDS})`;
    });
  }
}
