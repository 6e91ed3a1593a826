/** The table of file offers from and to local agents. Times are Unix milliseconds. */
import {
  FILE_OFFER_STATES,
  type FileOfferDirection,
  type FileOfferState,
  MAX_SETTLED_OFFERS,
} from '../domain/file-offers.ts';
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { dueRows } from './due-rows.ts';
import { aidFromRow, integerOf, textOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, type Column, flag, integer, named, nullable, ordinal, type RowOf, Table, text, word } from './table.ts';

/** A text that is empty in the database and null here. */
const orNone: Column<string | null> = {
  read: (row, column) => textOf(row, column) || null,
  write: (value) => value ?? '',
};

const OFFER = new Table('file_offers', {
  /** The local agent that sends or receives the offer. */
  aid,
  /** Chosen by the sender, lower-case hex. */
  id: text,
  /** The agent on the other side. */
  peer: aid,
  direction: named('outgoing', ordinal(['in', 'out'], 'in')),
  /** SHA-256 of the bytes, lower-case hex; null while the file is not hashed, or its hash was not received. */
  objectId: orNone,
  size: integer,
  name: text,
  message: text,
  state: word(FILE_OFFER_STATES),
  at: integer,
  expiresAt: integer,
  /** The object exists only for offers. */
  temporary: flag,
  attempts: integer,
  /** Why the file could not be read; null if it could. */
  problem: nullable(text),
  /** A client has received the result. */
  heard: flag,
});

export type FileOfferRow = RowOf<typeof OFFER>;

/** A new offer. */
export type NewFileOffer = Omit<FileOfferRow, 'state' | 'attempts' | 'problem' | 'heard'>;

/** The fields that two equal offers share. */
export type OfferContent = Pick<FileOfferRow, 'peer' | 'objectId' | 'size' | 'name' | 'message'>;

/** The outcome of an offer. */
interface Settlement {
  readonly aid: Aid;
  readonly id: string;
  readonly state: Exclude<FileOfferState, 'open'>;
  readonly now: number;
  readonly tellAt: number | null;
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
}

function mostFrequent(offers: readonly { readonly peer: Aid }[]): Aid | undefined {
  const byPeer = [...Map.groupBy(offers, ({ peer }) => peer)];
  return byPeer.reduce((most, one) => (one[1].length > most[1].length ? one : most))[0];
}

export class FileOfferStore {
  readonly #store: Store;
  /** The offers with a peer that does not know the outcome yet, by peer. */
  readonly endings: DueTable<FileOfferRow>;

  constructor(store: Store) {
    this.#store = store;
    this.endings = dueRows(
      store,
      { table: 'file_offers', dueAt: 'tell_at', id: "aid || ' ' || id", key: 'peer' },
      OFFER.read,
      ({ aid, id }, at) => this.scheduleNotification(aid, id, at),
    );
  }

  /** Stores a new offer. False if its agent is not registered here or already has an offer with this ID. */
  add(offer: NewFileOffer): boolean {
    return OFFER.insertForAgent(this.#store, { ...offer, state: 'open', heard: false });
  }

  get(aid: Aid, id: string): FileOfferRow | null {
    return OFFER.one(this.#store)`WHERE aid = ${aid} AND id = ${id}`;
  }

  /**
   * The newest offer of an agent with this content whose result no client has received. Not if it was withdrawn or has
   * expired.
   * @param since offers made before are ignored
   */
  findUnanswered(aid: Aid, { peer, objectId, size, name, message }: OfferContent, since: number): FileOfferRow | null {
    return OFFER.one(this.#store)`
      WHERE aid = ${aid} AND outgoing = 1 AND heard = 0 AND state IN ('open', 'taken', 'declined') AND at >= ${since}
        AND peer = ${peer} AND object_id = ${objectId ?? ''} AND size = ${size} AND name = ${name} AND message = ${message}
      ORDER BY at DESC, id LIMIT 1`;
  }

  /** Records that a client has received the result of an offer. */
  setHeard(aid: Aid, id: string): void {
    this.#store.run`UPDATE file_offers SET heard = 1 WHERE aid = ${aid} AND id = ${id}`;
  }

  /** Records whether the object of an offer exists only for offers. */
  setTemporary(aid: Aid, id: string, temporary: boolean): void {
    this.#store.run`UPDATE file_offers SET temporary = ${Number(temporary)} WHERE aid = ${aid} AND id = ${id}`;
  }

  /**
   * The offers of an agent, newest first: one direction or both, open or all. Offers that were withdrawn before they
   * arrived have no name and are omitted.
   */
  list(aid: Aid, direction: FileOfferDirection | undefined, onlyOpen: boolean): FileOfferRow[] {
    const outgoing = direction === undefined ? null : Number(direction === 'out');
    return OFFER.all(this.#store)`
      WHERE aid = ${aid} AND (${outgoing} IS NULL OR outgoing = ${outgoing}) AND (${Number(onlyOpen)} = 0 OR state = 'open') AND name <> ''
      ORDER BY at DESC, id`;
  }

  /** Open offers of an agent in one direction, counted by peer. */
  openByPeer(aid: Aid, direction: FileOfferDirection): Map<Aid, number> {
    const rows = this.#store.all`
      SELECT peer, count(*) AS n FROM file_offers
      WHERE aid = ${aid} AND outgoing = ${Number(direction === 'out')} AND state = 'open' GROUP BY peer`;
    return new Map(rows.map((row) => [aidFromRow(row, 'peer'), integerOf(row, 'n')]));
  }

  /** True if a local agent has an open offer to a peer: this one or, if `id` is null, any. */
  isOffered(aid: Aid, peer: Aid, id: string | null, now: number): boolean {
    return (
      this.#store.one`
        SELECT 1 FROM file_offers
        WHERE aid = ${aid} AND outgoing = 1 AND peer = ${peer} AND state = 'open' AND expires_at > ${now}
          AND (${id} IS NULL OR id = ${id}) LIMIT 1` !== undefined
    );
  }

  /** Records the hash of the file of an offer, unless it is known. */
  setObject(aid: Aid, id: string, objectId: string): void {
    this.#store.run`
      UPDATE file_offers SET object_id = ${objectId} WHERE aid = ${aid} AND id = ${id} AND object_id = ''`;
  }

  /** Records why the file of an offer cannot be read. */
  setProblem(aid: Aid, id: string, problem: string): void {
    this.#store.run`UPDATE file_offers SET problem = ${problem} WHERE aid = ${aid} AND id = ${id}`;
  }

  /** True if an object of an agent exists only for offers. */
  isTemporary(aid: Aid, objectId: string): boolean {
    return (
      this.#store.one`
        SELECT 1 FROM file_offers WHERE aid = ${aid} AND object_id = ${objectId} AND temporary = 1 LIMIT 1` !==
      undefined
    );
  }

  /** Open offers by local agents whose file is not hashed. */
  unhashed(): FileOfferRow[] {
    return OFFER.all(this.#store)`WHERE outgoing = 1 AND state = 'open' AND object_id = ''`;
  }

  /**
   * Closes an open offer. False if it is not open.
   * @param tellAt when to notify the peer; null if it knows
   * @param isKnown true if the owner of the agent labeled a peer or allowed it by its AID
   */
  settle({ aid, id, state, now, tellAt, isKnown }: Settlement): boolean {
    return this.#store.transaction(() => {
      const settled = this.#store.run`
        UPDATE file_offers SET state = ${state}, settled_at = ${now}, tell_at = ${tellAt}, attempts = 0
        WHERE aid = ${aid} AND id = ${id} AND state = 'open'`;
      if (settled > 0) this.#deleteOldest(aid, id, isKnown);
      return settled > 0;
    });
  }

  /**
   * Deletes excess closed offers: first the oldest from strangers, then the oldest with the peer that has the most. The
   * offer that was just closed is kept.
   */
  #deleteOldest(aid: Aid, last: string, isKnown: Settlement['isKnown']): void {
    const over = OFFER.all(this.#store)`
      WHERE aid = ${aid} AND state <> 'open' AND id <> ${last} ORDER BY settled_at, id DESC`;
    for (let excess = over.length + 1 - MAX_SETTLED_OFFERS; excess > 0; excess--) {
      const ofStranger = over.findIndex(({ peer, direction }) => direction === 'in' && !isKnown(aid, peer));
      const at = ofStranger >= 0 ? ofStranger : over.findIndex(({ peer }) => peer === mostFrequent(over));
      for (const { id } of over.splice(at, 1))
        this.#store.run`DELETE FROM file_offers WHERE aid = ${aid} AND id = ${id}`;
    }
  }

  /** Open offers that have expired, up to `limit`. */
  expired(now: number, limit: number): FileOfferRow[] {
    return OFFER.all(this.#store)`WHERE state = 'open' AND expires_at <= ${now} ORDER BY expires_at LIMIT ${limit}`;
  }

  /** Schedules the next notification of the peer; null: none is needed. */
  scheduleNotification(aid: Aid, id: string, tellAt: number | null): void {
    this.#store.run`
      UPDATE file_offers SET tell_at = ${tellAt}, attempts = attempts + 1 WHERE aid = ${aid} AND id = ${id}`;
  }

  /** Objects that exist only for offers and have no open offer, up to `limit`. */
  orphanedObjects(limit: number): { readonly aid: Aid; readonly objectId: string }[] {
    return this.#store.all`
      SELECT DISTINCT aid, object_id FROM file_offers AS over
      WHERE temporary = 1 AND state <> 'open' AND object_id <> '' AND NOT EXISTS
        (SELECT 1 FROM file_offers
         WHERE aid = over.aid AND outgoing = 1 AND object_id = over.object_id AND state = 'open')
      LIMIT ${limit}`.map((row) => ({ aid: aidFromRow(row, 'aid'), objectId: textOf(row, 'object_id') }));
  }

  /** Keeps an object when its offers end, because it has another use or was already deleted. */
  keepObject(aid: Aid, objectId: string): void {
    this.#store.run`
      UPDATE file_offers SET temporary = 0 WHERE aid = ${aid} AND object_id = ${objectId} AND temporary = 1`;
  }
}
