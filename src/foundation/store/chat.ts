/** The table of chats: a local agent, a peer, and their relationship. Times are Unix milliseconds. */
import { CONTROLS, type Control, PAIR_STATES, type PairState } from '../domain/chat.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

/** The columns that change with the relationship. */
export type Relationship = Readonly<ReturnType<typeof relationshipOf>>;

export type PairRow = Readonly<ReturnType<typeof pairOf>>;

/** The columns that change when the user reads. */
export type ReadState = Pick<PairRow, 'readCursor' | 'unread'>;

export interface ChatCounters {
  readonly invites: number;
  readonly unread: number;
}

function controlOf(row: Row | undefined, column: string): Control {
  return wordOf(row, column, CONTROLS);
}

function relationshipOf(row: Row) {
  return {
    state: wordOf(row, 'state', PAIR_STATES),
    since: integerOf(row, 'since'),
    /** The text of the request. */
    note: textOf(row, 'note'),
    /** When an open request expires; null if none is open. */
    expiresAt: orNull(integerOf, row, 'expires_at'),
    /** The source of an incoming request; null for local callers and without a request. */
    origin: orNull(textOf, row, 'origin'),
    /** ID of the outgoing stream of this relationship; null without a relationship. */
    outStream: orNull(blobOf, row, 'out_stream'),
    /** How many entries of this relationship the peer has acknowledged, and the ID of the last one. */
    acked: integerOf(row, 'acked'),
    ackedId: orNull(blobOf, row, 'acked_id'),
    inStream: orNull(blobOf, row, 'in_stream'),
    control: orNull(controlOf, row, 'control'),
    /** Until when the control message is sent; null: without limit. */
    controlUntil: orNull(integerOf, row, 'control_until'),
    /** The streams of the ended relationship, for the control message `gone`. */
    goneOut: orNull(blobOf, row, 'gone_out'),
    goneIn: orNull(blobOf, row, 'gone_in'),
  };
}

function pairOf(row: Row) {
  return {
    ...relationshipOf(row),
    id: integerOf(row, 'id'),
    aid: aidFromRow(row, 'aid'),
    peer: aidFromRow(row, 'peer'),
    /** ID of the last entry that was accepted from the peer, in any relationship. */
    receivedId: orNull(blobOf, row, 'received_id'),
    /** Entries that were not delivered to the peer. */
    queued: integerOf(row, 'queued'),
    queuedBytes: integerOf(row, 'queued_bytes'),
    lastSeq: integerOf(row, 'last_seq'),
    lastAt: orNull(integerOf, row, 'last_at'),
    readCursor: integerOf(row, 'read_cursor'),
    unread: integerOf(row, 'unread'),
    unreadBytes: integerOf(row, 'unread_bytes'),
  };
}

export class ChatStore {
  readonly #store: Store;
  /** See `Store.commit`. */
  readonly commit: Store['commit'];
  /** See `Store.onRepair`. */
  readonly onRepair: Store['onRepair'];

  constructor(store: Store) {
    this.#store = store;
    this.commit = store.commit.bind(store);
    this.onRepair = store.onRepair.bind(store);
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  pair(aid: Aid, peer: Aid): PairRow | null {
    const row = this.#store.one`SELECT * FROM chat_pairs WHERE aid = ${aid} AND peer = ${peer}`;
    return row === undefined ? null : pairOf(row);
  }

  byId(id: number): PairRow | null {
    const row = this.#store.one`SELECT * FROM chat_pairs WHERE id = ${id}`;
    return row === undefined ? null : pairOf(row);
  }

  /** Returns the pair, which is created if necessary; null if the agent is not registered here. */
  open(aid: Aid, peer: Aid, now: number): PairRow | null {
    this.#store.run`
      INSERT INTO chat_pairs (aid, peer, state, since) SELECT aid, ${peer}, 'none', ${now} FROM agents WHERE aid = ${aid}
      ON CONFLICT DO NOTHING`;
    return this.pair(aid, peer);
  }

  /** Every pair of an agent, the most recently active first. */
  all(aid: Aid): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE aid = ${aid} ORDER BY coalesce(last_at, since) DESC, id`;
    return rows.map(pairOf);
  }

  /** Stores the relationship of a pair. */
  setRelationship(id: number, r: Relationship): void {
    // A peer that was removed or blocked must not return if the journal is lost.
    if (r.state === 'blocked' || r.state === 'none')
      this.#store.durableTransaction(() => this.#storeRelationship(id, r));
    else this.#storeRelationship(id, r);
  }

  #storeRelationship(id: number, r: Relationship): void {
    this.#store.run`
      UPDATE chat_pairs SET state = ${r.state}, since = ${r.since}, note = ${r.note}, expires_at = ${r.expiresAt},
        origin = ${r.origin}, out_stream = ${r.outStream}, acked = ${r.acked}, acked_id = ${r.ackedId},
        in_stream = ${r.inStream}, control = ${r.control}, control_until = ${r.controlUntil}, gone_out = ${r.goneOut}, gone_in = ${r.goneIn} WHERE id = ${id}`;
  }

  /** Deletes a pair without a relationship, a pending control message or a log. */
  deleteIfEmpty(id: number): void {
    this.#store.run`
      DELETE FROM chat_pairs WHERE id = ${id} AND state = 'none' AND control IS NULL AND last_seq = 0`;
  }

  /** The pairs of an agent in one state, oldest first. */
  inState(aid: Aid, state: PairState): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE aid = ${aid} AND state = ${state} ORDER BY since, id`;
    return rows.map(pairOf);
  }

  count(aid: Aid, state: PairState): number {
    const row = this.#store.one`SELECT count(*) AS n FROM chat_pairs WHERE aid = ${aid} AND state = ${state}`;
    return orZero(row, 'n');
  }

  /** The sources of an agent's open incoming requests, one per request. Local requests have none. */
  requestSources(aid: Aid): string[] {
    const rows = this.#store.all`
      SELECT origin FROM chat_pairs WHERE aid = ${aid} AND origin IS NOT NULL AND state = 'in_pending'`;
    return rows.map((row) => textOf(row, 'origin'));
  }

  /** Peers with an open request to an agent, oldest first. */
  inviters(aid: Aid, limit: number): Aid[] {
    const rows = this.#store.all`
      SELECT peer FROM chat_pairs WHERE aid = ${aid} AND state = 'in_pending' ORDER BY since, id LIMIT ${limit}`;
    return rows.map((row) => aidFromRow(row, 'peer'));
  }

  /** Pairs of an agent with a pending control message or queued entries. */
  pendingPairsOf(aid: Aid): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE aid = ${aid} AND (control IS NOT NULL OR queued > 0)`;
    return rows.map(pairOf);
  }

  /** Pairs after `afterId` with a pending control message or queued entries. */
  pendingPairs(afterId: number, limit: number): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE (control IS NOT NULL OR queued > 0) AND id > ${afterId} ORDER BY id LIMIT ${limit}`;
    return rows.map(pairOf);
  }

  /** Friends that were added or active since a time, the most recent first. */
  recentFriends(since: number, limit: number): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE state = 'friends' AND coalesce(last_at, since) >= ${since}
      ORDER BY coalesce(last_at, since) DESC LIMIT ${limit}`;
    return rows.map(pairOf);
  }

  /** Pairs with a request or a control message that expires before `now`. */
  overdue(now: number, limit: number): PairRow[] {
    const requests = this.#store.all`SELECT * FROM chat_pairs WHERE expires_at <= ${now} LIMIT ${limit}`;
    const words = this.#store.all`SELECT * FROM chat_pairs WHERE control_until <= ${now} LIMIT ${limit}`;
    const pairs = new Map([...requests, ...words].map((row) => [integerOf(row, 'id'), pairOf(row)]));
    return [...pairs.values()];
  }

  /** Open requests and unread entries, by AID, for agents that have some. */
  counters(): Map<Aid, ChatCounters> {
    const counters = new Map<Aid, ChatCounters>();
    const unread = this.#store.all('SELECT aid, sum(unread) AS n FROM chat_pairs WHERE unread > 0 GROUP BY aid');
    for (const row of unread) counters.set(aidFromRow(row, 'aid'), { invites: 0, unread: integerOf(row, 'n') });
    const invites = this.#store.all`SELECT aid, count(*) AS n FROM chat_pairs WHERE state = 'in_pending' GROUP BY aid`;
    for (const row of invites) {
      const aid = aidFromRow(row, 'aid');
      counters.set(aid, { invites: integerOf(row, 'n'), unread: counters.get(aid)?.unread ?? 0 });
    }
    return counters;
  }
}
