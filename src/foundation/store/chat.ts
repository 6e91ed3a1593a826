/** The table of chats: a local agent, a peer, and their relationship. Times are Unix milliseconds. */
import { CONTROLS, PAIR_STATES, type PairState } from '../domain/chat.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, integerOf, orZero, textOf } from './row.ts';
import type { Store } from './store.ts';
import { aid, blob, integer, nullable, type RowOf, Table, text, word } from './table.ts';

/** The columns that change with the relationship. */
const RELATIONSHIP = new Table('chat_pairs', {
  state: word(PAIR_STATES),
  since: integer,
  /** The text of the request. */
  note: text,
  /** When an open request expires; null if none is open. */
  expiresAt: nullable(integer),
  /** The source of an incoming request; null for local callers and without a request. */
  origin: nullable(text),
  /** ID of the outgoing stream of this relationship; null without a relationship. */
  outStream: nullable(blob),
  /** How many entries of this relationship the peer has acknowledged, and the ID of the last one. */
  acked: integer,
  ackedId: nullable(blob),
  inStream: nullable(blob),
  control: nullable(word(CONTROLS)),
  /** Until when the control message is sent; null: without limit. */
  controlUntil: nullable(integer),
  /** The streams of the ended relationship, for the control message `gone`. */
  goneOut: nullable(blob),
  goneIn: nullable(blob),
});

const PAIR = new Table('chat_pairs', {
  ...RELATIONSHIP.columns,
  id: integer,
  aid,
  peer: aid,
  /** ID of the last entry that was accepted from the peer, in any relationship. */
  receivedId: nullable(blob),
  /** Entries that were not delivered to the peer. */
  queued: integer,
  queuedBytes: integer,
  lastSeq: integer,
  lastAt: nullable(integer),
  readCursor: integer,
  unread: integer,
  unreadBytes: integer,
});

export type Relationship = RowOf<typeof RELATIONSHIP>;
export type PairRow = RowOf<typeof PAIR>;

/** The columns that change when the user reads. */
export type ReadState = Pick<PairRow, 'readCursor' | 'unread'>;

export interface ChatCounters {
  readonly invites: number;
  readonly unread: number;
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
    return PAIR.one(this.#store)`WHERE aid = ${aid} AND peer = ${peer}`;
  }

  byId(id: number): PairRow | null {
    return PAIR.one(this.#store)`WHERE id = ${id}`;
  }

  /** Returns the pair, which is created if necessary; null if the agent is not registered here. */
  open(aid: Aid, peer: Aid, now: number): PairRow | null {
    PAIR.insertForAgent(this.#store, { aid, peer, state: 'none', since: now });
    return this.pair(aid, peer);
  }

  /** Every pair of an agent, the most recently active first. */
  all(aid: Aid): PairRow[] {
    return PAIR.all(this.#store)`WHERE aid = ${aid} ORDER BY coalesce(last_at, since) DESC, id`;
  }

  /** Stores the relationship of a pair. */
  setRelationship(id: number, r: Relationship): void {
    // A peer that was removed or blocked must not return if the journal is lost.
    if (r.state === 'blocked' || r.state === 'none')
      this.#store.durableTransaction(() => RELATIONSHIP.update(this.#store, r, 'WHERE id = ?', id));
    else RELATIONSHIP.update(this.#store, r, 'WHERE id = ?', id);
  }

  /** Deletes a pair without a relationship, a pending control message or a log. */
  deleteIfEmpty(id: number): void {
    this.#store.run`
      DELETE FROM chat_pairs WHERE id = ${id} AND state = 'none' AND control IS NULL AND last_seq = 0`;
  }

  /** The pairs of an agent in one state, oldest first. */
  inState(aid: Aid, state: PairState): PairRow[] {
    return PAIR.all(this.#store)`WHERE aid = ${aid} AND state = ${state} ORDER BY since, id`;
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
    return PAIR.all(this.#store)`WHERE aid = ${aid} AND (control IS NOT NULL OR queued > 0)`;
  }

  /** Pairs after `afterId` with a pending control message or queued entries. */
  pendingPairs(afterId: number, limit: number): PairRow[] {
    return PAIR.all(
      this.#store,
    )`WHERE (control IS NOT NULL OR queued > 0) AND id > ${afterId} ORDER BY id LIMIT ${limit}`;
  }

  /** Friends that were added or active since a time, the most recent first. */
  recentFriends(since: number, limit: number): PairRow[] {
    return PAIR.all(this.#store)`
      WHERE state = 'friends' AND coalesce(last_at, since) >= ${since}
      ORDER BY coalesce(last_at, since) DESC LIMIT ${limit}`;
  }

  /** Pairs with a request or a control message that expires before `now`. */
  overdue(now: number, limit: number): PairRow[] {
    const requests = PAIR.all(this.#store)`WHERE expires_at <= ${now} LIMIT ${limit}`;
    const words = PAIR.all(this.#store)`WHERE control_until <= ${now} LIMIT ${limit}`;
    return [...new Map([...requests, ...words].map((pair) => [pair.id, pair])).values()];
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
