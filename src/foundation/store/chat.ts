/** The table of conversations: a local agent, a peer, and how they stand. Times are Unix milliseconds. */
import { CONTROLS, type Control, PAIR_STATES, type PairState } from '../domain/chat.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Durability, Row, Store, WrittenSoon } from './store.ts';

/** What changes with the relationship. */
export type Relationship = Readonly<ReturnType<typeof relationshipOf>>;

export type PairRow = Readonly<ReturnType<typeof pairOf>>;

/** What a mark of the reader changes. */
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
    /** What was said with the request. */
    note: textOf(row, 'note'),
    /** When an open request ends; null where none is open. */
    expiresAt: orNull(integerOf, row, 'expires_at'),
    /** The network that an incoming request came from; null on this machine, or where there is none. */
    origin: orNull(textOf, row, 'origin'),
    /** Names what we send in this relationship; null where there is none. */
    outStream: orNull(blobOf, row, 'out_stream'),
    /** How much of it has arrived. */
    acked: integerOf(row, 'acked'),
    inStream: orNull(blobOf, row, 'in_stream'),
    /** How much of the peer's stream is here. */
    received: integerOf(row, 'received'),
    control: orNull(controlOf, row, 'control'),
    /** Until when the peer is told; null without end. */
    controlUntil: orNull(integerOf, row, 'control_until'),
    /** The streams of the relationship that is `gone`. */
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
    /** Entries that have not arrived at the peer. */
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

  constructor(store: Store) {
    this.#store = store;
  }

  /** As `Store.transactionSoon`. */
  transactionSoon<T>(work: () => T): WrittenSoon<T> {
    return this.#store.transactionSoon(work);
  }

  transaction<T>(work: () => T, durability?: Durability): T {
    return this.#store.transaction(work, durability);
  }

  pair(aid: Aid, peer: Aid): PairRow | null {
    const row = this.#store.one`SELECT * FROM chat_pairs WHERE aid = ${aid} AND peer = ${peer}`;
    return row === undefined ? null : pairOf(row);
  }

  byId(id: number): PairRow | null {
    const row = this.#store.one`SELECT * FROM chat_pairs WHERE id = ${id}`;
    return row === undefined ? null : pairOf(row);
  }

  /** The pair, made where there is none yet; null where the agent is not here. */
  open(aid: Aid, peer: Aid, now: number): PairRow | null {
    this.#store.run`
      INSERT INTO chat_pairs (aid, peer, state, since) SELECT aid, ${peer}, 'none', ${now} FROM agents WHERE aid = ${aid}
      ON CONFLICT DO NOTHING`;
    return this.pair(aid, peer);
  }

  /** Every pair of an agent, those where something was said last first. */
  all(aid: Aid): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE aid = ${aid} ORDER BY coalesce(last_at, since) DESC, id`;
    return rows.map(pairOf);
  }

  /** Keeps how a pair stands now. */
  relate(id: number, r: Relationship): void {
    // A peer that was sent away does not come back with a journal that was lost.
    if (r.state === 'blocked' || r.state === 'none') this.#store.lasting(() => this.#relate(id, r));
    else this.#relate(id, r);
  }

  #relate(id: number, r: Relationship): void {
    this.#store.run`
      UPDATE chat_pairs SET state = ${r.state}, since = ${r.since}, note = ${r.note}, expires_at = ${r.expiresAt},
        origin = ${r.origin}, out_stream = ${r.outStream}, acked = ${r.acked}, in_stream = ${r.inStream},
        received = ${r.received}, control = ${r.control}, control_until = ${r.controlUntil},
        gone_out = ${r.goneOut}, gone_in = ${r.goneIn} WHERE id = ${id}`;
  }

  /** Deletes a pair that says nothing any more: no relationship, no word to the peer, no log. */
  forgetIfEmpty(id: number): void {
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

  /** The sources of the open incoming requests of an agent, one for each request; those from this machine have none. */
  inviteOrigins(aid: Aid): string[] {
    const rows = this.#store.all`
      SELECT origin FROM chat_pairs WHERE aid = ${aid} AND origin IS NOT NULL AND state = 'in_pending'`;
    return rows.map((row) => textOf(row, 'origin'));
  }

  /** Who has sent an agent a request that is open, oldest first. */
  inviters(aid: Aid, limit: number): Aid[] {
    const rows = this.#store.all`
      SELECT peer FROM chat_pairs WHERE aid = ${aid} AND state = 'in_pending' ORDER BY since, id LIMIT ${limit}`;
    return rows.map((row) => aidFromRow(row, 'peer'));
  }

  /** The pairs of an agent whose peer has yet to be told or given something. */
  withWorkOf(aid: Aid): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE aid = ${aid} AND (control IS NOT NULL OR queued > 0)`;
    return rows.map(pairOf);
  }

  /** Pairs behind `afterId` whose peer has yet to be told or given something. */
  withWork(afterId: number, limit: number): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE (control IS NOT NULL OR queued > 0) AND id > ${afterId} ORDER BY id LIMIT ${limit}`;
    return rows.map(pairOf);
  }

  /** Friends since a time, or with whom something was said since then, the latest first. */
  recentFriends(since: number, limit: number): PairRow[] {
    const rows = this.#store.all`
      SELECT * FROM chat_pairs WHERE state = 'friends' AND coalesce(last_at, since) >= ${since}
      ORDER BY coalesce(last_at, since) DESC LIMIT ${limit}`;
    return rows.map(pairOf);
  }

  /** Pairs whose open request, or whose word to the peer, ends before `now`. */
  overdue(now: number, limit: number): PairRow[] {
    const requests = this.#store.all`SELECT * FROM chat_pairs WHERE expires_at <= ${now} LIMIT ${limit}`;
    const words = this.#store.all`SELECT * FROM chat_pairs WHERE control_until <= ${now} LIMIT ${limit}`;
    const pairs = new Map([...requests, ...words].map((row) => [integerOf(row, 'id'), pairOf(row)]));
    return [...pairs.values()];
  }

  /** What waits for the agents here, by AID: of those with something only. */
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
