/** The table of conversations: a local agent, a peer, and how they stand. Times are Unix milliseconds. */
import { CONTROLS, type Control, PAIR_STATES, type PairState } from '../domain/chat.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Durability, Row, Store } from './store.ts';

/** What changes with the relationship. */
export interface Relationship {
  readonly state: PairState;
  readonly since: number;
  /** What was said with the request. */
  readonly note: string;
  /** When an open request ends; null where none is open. */
  readonly expiresAt: number | null;
  /** The network that an incoming request came from; null on this machine, or where there is none. */
  readonly origin: string | null;
  /** Names what we send in this relationship; null where there is none. */
  readonly outStream: Uint8Array | null;
  /** How much of it has arrived. */
  readonly acked: number;
  readonly inStream: Uint8Array | null;
  /** How much of the peer's stream is here. */
  readonly received: number;
  readonly control: Control | null;
  /** Until when the peer is told; null without end. */
  readonly controlUntil: number | null;
  /** The streams of the relationship that is `gone`. */
  readonly goneOut: Uint8Array | null;
  readonly goneIn: Uint8Array | null;
}

export interface PairRow extends Relationship {
  readonly id: number;
  readonly aid: Aid;
  readonly peer: Aid;
  /** Entries that have not arrived at the peer. */
  readonly queued: number;
  readonly queuedBytes: number;
  readonly lastSeq: number;
  readonly lastAt: number | null;
  readonly readCursor: number;
  readonly unread: number;
  readonly unreadBytes: number;
}

/** What a mark of the reader changes. */
export interface ReadState {
  readonly readCursor: number;
  readonly unread: number;
}

export interface ChatCounters {
  readonly invites: number;
  readonly unread: number;
}

function controlOf(row: Row | undefined, column: string): Control {
  return wordOf(row, column, CONTROLS);
}

function pairOf(row: Row): PairRow {
  return {
    id: integerOf(row, 'id'),
    aid: aidFromRow(row, 'aid'),
    peer: aidFromRow(row, 'peer'),
    state: wordOf(row, 'state', PAIR_STATES),
    since: integerOf(row, 'since'),
    note: textOf(row, 'note'),
    expiresAt: orNull(integerOf, row, 'expires_at'),
    origin: orNull(textOf, row, 'origin'),
    outStream: orNull(blobOf, row, 'out_stream'),
    acked: integerOf(row, 'acked'),
    inStream: orNull(blobOf, row, 'in_stream'),
    received: integerOf(row, 'received'),
    control: orNull(controlOf, row, 'control'),
    controlUntil: orNull(integerOf, row, 'control_until'),
    goneOut: orNull(blobOf, row, 'gone_out'),
    goneIn: orNull(blobOf, row, 'gone_in'),
    queued: integerOf(row, 'queued'),
    queuedBytes: integerOf(row, 'queued_bytes'),
    lastSeq: integerOf(row, 'last_seq'),
    lastAt: orNull(integerOf, row, 'last_at'),
    readCursor: integerOf(row, 'read_cursor'),
    unread: integerOf(row, 'unread'),
    unreadBytes: integerOf(row, 'unread_bytes'),
  };
}

function sortedAids(rows: readonly Row[]): Aid[] {
  return rows.map((row) => aidFromRow(row, 'peer'));
}

export class ChatStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T, durability?: Durability): T {
    return this.#store.transaction(work, durability);
  }

  pair(aid: Aid, peer: Aid): PairRow | null {
    const row = this.#store.one('SELECT * FROM chat_pairs WHERE aid = ? AND peer = ?', aid, peer);
    return row === undefined ? null : pairOf(row);
  }

  byId(id: number): PairRow | null {
    const row = this.#store.one('SELECT * FROM chat_pairs WHERE id = ?', id);
    return row === undefined ? null : pairOf(row);
  }

  /** The pair, made where there is none yet; null where the agent is not here. */
  open(aid: Aid, peer: Aid, now: number): PairRow | null {
    this.#store.run(
      `INSERT INTO chat_pairs (aid, peer, state, since) SELECT aid, ?2, 'none', ?3 FROM agents WHERE aid = ?1
       ON CONFLICT DO NOTHING`,
      aid,
      peer,
      now,
    );
    return this.pair(aid, peer);
  }

  /** Every pair of an agent, those where something was said last first. */
  all(aid: Aid): PairRow[] {
    const sql = 'SELECT * FROM chat_pairs WHERE aid = ? ORDER BY coalesce(last_at, since) DESC, id';
    return this.#store.all(sql, aid).map(pairOf);
  }

  /** Keeps how a pair stands now. */
  relate(id: number, r: Relationship): void {
    this.#store.run(
      `UPDATE chat_pairs SET state = ?, since = ?, note = ?, expires_at = ?, origin = ?, out_stream = ?, acked = ?,
         in_stream = ?, received = ?, control = ?, control_until = ?, gone_out = ?, gone_in = ? WHERE id = ?`,
      r.state,
      r.since,
      r.note,
      r.expiresAt,
      r.origin,
      r.outStream,
      r.acked,
      r.inStream,
      r.received,
      r.control,
      r.controlUntil,
      r.goneOut,
      r.goneIn,
      id,
    );
  }

  /** Deletes a pair that says nothing any more: no relationship, no word to the peer, no log. */
  forgetIfEmpty(id: number): void {
    this.#store.run("DELETE FROM chat_pairs WHERE id = ? AND state = 'none' AND control IS NULL AND last_seq = 0", id);
  }

  /** The pairs of an agent in one state, oldest first. */
  inState(aid: Aid, state: PairState): PairRow[] {
    return this.#store
      .all('SELECT * FROM chat_pairs WHERE aid = ? AND state = ? ORDER BY since, id', aid, state)
      .map(pairOf);
  }

  count(aid: Aid, state: PairState): number {
    return orZero(this.#store.one('SELECT count(*) AS n FROM chat_pairs WHERE aid = ? AND state = ?', aid, state), 'n');
  }

  /** Open incoming requests of an agent that came from one network. */
  invitesFrom(aid: Aid, origin: string): number {
    const sql = "SELECT count(*) AS n FROM chat_pairs WHERE aid = ? AND origin = ? AND state = 'in_pending'";
    return orZero(this.#store.one(sql, aid, origin), 'n');
  }

  /** Who has sent an agent a request that is open, oldest first. */
  inviters(aid: Aid, limit: number): Aid[] {
    const sql = "SELECT peer FROM chat_pairs WHERE aid = ? AND state = 'in_pending' ORDER BY since, id LIMIT ?";
    return sortedAids(this.#store.all(sql, aid, limit));
  }

  /** The pairs of an agent whose peer has yet to be told or given something. */
  withWorkOf(aid: Aid): PairRow[] {
    const sql = 'SELECT * FROM chat_pairs WHERE aid = ? AND (control IS NOT NULL OR queued > 0)';
    return this.#store.all(sql, aid).map(pairOf);
  }

  /** Pairs behind `afterId` whose peer has yet to be told or given something. */
  withWork(afterId: number, limit: number): PairRow[] {
    return this.#store
      .all(
        'SELECT * FROM chat_pairs WHERE (control IS NOT NULL OR queued > 0) AND id > ? ORDER BY id LIMIT ?',
        afterId,
        limit,
      )
      .map(pairOf);
  }

  /** Friends since a time, or with whom something was said since then, the latest first. */
  recentFriends(since: number, limit: number): PairRow[] {
    const sql = `SELECT * FROM chat_pairs WHERE state = 'friends' AND coalesce(last_at, since) >= ?
       ORDER BY coalesce(last_at, since) DESC LIMIT ?`;
    return this.#store.all(sql, since, limit).map(pairOf);
  }

  /** Pairs whose open request, or whose word to the peer, ends before `now`. */
  overdue(now: number, limit: number): PairRow[] {
    const requests = this.#store.all('SELECT * FROM chat_pairs WHERE expires_at <= ? LIMIT ?', now, limit);
    const words = this.#store.all('SELECT * FROM chat_pairs WHERE control_until <= ? LIMIT ?', now, limit);
    const pairs = new Map([...requests, ...words].map((row) => [integerOf(row, 'id'), pairOf(row)]));
    return [...pairs.values()];
  }

  /** What waits for the agents here, by AID: of those with something only. */
  counters(): Map<Aid, ChatCounters> {
    const counters = new Map<Aid, ChatCounters>();
    const unread = this.#store.all('SELECT aid, sum(unread) AS n FROM chat_pairs WHERE unread > 0 GROUP BY aid');
    for (const row of unread) counters.set(aidFromRow(row, 'aid'), { invites: 0, unread: integerOf(row, 'n') });
    const invites = this.#store.all(
      "SELECT aid, count(*) AS n FROM chat_pairs WHERE state = 'in_pending' GROUP BY aid",
    );
    for (const row of invites) {
      const aid = aidFromRow(row, 'aid');
      counters.set(aid, { invites: integerOf(row, 'n'), unread: counters.get(aid)?.unread ?? 0 });
    }
    return counters;
  }
}
