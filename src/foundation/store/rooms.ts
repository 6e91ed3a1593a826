/** The tables of rooms: replicas and what is known about them. Times are Unix milliseconds. */
import { toHex } from '../bytes.ts';
import { ROOM_STATES, type RoomState } from '../domain/rooms.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, aidsOf, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

export interface NewRoom {
  readonly aid: Aid;
  /** Lower-case hex. */
  readonly groupId: string;
  readonly creator: Aid;
  readonly title: string;
  readonly state: RoomState;
  readonly secret: Uint8Array | null;
  /** Whom to ask while the log names nobody. */
  readonly hints: readonly Aid[];
  /** Names this replica: a peer that read another one begins again. */
  readonly epoch: Uint8Array;
  readonly lastAt: number;
}

export interface RoomRow extends NewRoom {
  readonly rid: number;
  readonly maxSeq: number;
  readonly readSeq: number;
  /** Entries of others behind the read cursor that are worth reading, and those of them that name the agent. */
  readonly unread: number;
  readonly mentions: number;
}

/** An invitation that came. */
export interface InviteIn {
  readonly aid: Aid;
  readonly groupId: string;
  readonly inviter: Aid;
  readonly creator: Aid;
  readonly title: string;
  readonly secret: Uint8Array | null;
  readonly at: number;
}

/** An invitation on its way. */
export interface InviteOut {
  readonly rid: number;
  readonly target: Aid;
  readonly nextAt: number;
  readonly until: number;
  readonly attempts: number;
}

export function hexToBlob(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

function roomOf(row: Row): RoomRow {
  return {
    rid: integerOf(row, 'rid'),
    aid: aidFromRow(row, 'aid'),
    groupId: toHex(blobOf(row, 'group_id')),
    creator: aidFromRow(row, 'creator'),
    title: textOf(row, 'title'),
    state: wordOf(row, 'state', ROOM_STATES),
    secret: orNull(blobOf, row, 'secret'),
    hints: aidsOf(row, 'hints'),
    epoch: blobOf(row, 'epoch'),
    lastAt: integerOf(row, 'last_at'),
    maxSeq: integerOf(row, 'max_seq'),
    readSeq: integerOf(row, 'read_seq'),
    unread: integerOf(row, 'unread'),
    mentions: integerOf(row, 'mentions'),
  };
}

function inviteOf(row: Row): InviteIn {
  return {
    aid: aidFromRow(row, 'aid'),
    groupId: toHex(blobOf(row, 'group_id')),
    inviter: aidFromRow(row, 'inviter'),
    creator: aidFromRow(row, 'creator'),
    title: textOf(row, 'title'),
    secret: orNull(blobOf, row, 'secret'),
    at: integerOf(row, 'at'),
  };
}

export class RoomStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Keeps a room of a local agent; returns its number. */
  add(room: NewRoom): number {
    this.#store.run(
      `INSERT INTO rooms (aid, group_id, creator, title, state, secret, hints, epoch, last_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      room.aid,
      hexToBlob(room.groupId),
      room.creator,
      room.title,
      room.state,
      room.secret,
      room.hints.join(' '),
      room.epoch,
      room.lastAt,
    );
    return orZero(this.#store.one('SELECT last_insert_rowid() AS rid'), 'rid');
  }

  find(aid: Aid, groupId: string): RoomRow | null {
    const row = this.#store.one('SELECT * FROM rooms WHERE aid = ? AND group_id = ?', aid, hexToBlob(groupId));
    return row === undefined ? null : roomOf(row);
  }

  byRid(rid: number): RoomRow | null {
    const row = this.#store.one('SELECT * FROM rooms WHERE rid = ?', rid);
    return row === undefined ? null : roomOf(row);
  }

  list(aid: Aid): RoomRow[] {
    return this.#store.all('SELECT * FROM rooms WHERE aid = ? ORDER BY rid', aid).map(roomOf);
  }

  /** Rooms that an agent is in, or joins. */
  count(aid: Aid): number {
    const sql = `SELECT count(*) AS n FROM rooms WHERE aid = ? AND state IN ('joining', 'member')`;
    return orZero(this.#store.one(sql, aid), 'n');
  }

  /** Forgets what an agent left, or was removed from, but the newest ones; returns the numbers of those that went. */
  forgetPast(aid: Aid, keep: number): number[] {
    return this.#store
      .all(
        `DELETE FROM rooms WHERE rid IN
           (SELECT rid FROM rooms WHERE aid = ? AND state IN ('left', 'removed')
            ORDER BY last_at DESC, rid DESC LIMIT -1 OFFSET ?) RETURNING rid`,
        aid,
        keep,
      )
      .map((row) => integerOf(row, 'rid'));
  }

  /** The numbers of the rooms that are kept in step: those that were left, for some time, so that others hear of it. */
  rids(leftSince: number): number[] {
    return this.#store
      .all(
        `SELECT rid FROM rooms WHERE state IN ('joining', 'member') OR (state = 'left' AND last_at >= ?) ORDER BY rid`,
        leftSince,
      )
      .map((row) => integerOf(row, 'rid'));
  }

  setState(rid: number, state: RoomState): void {
    this.#store.run('UPDATE rooms SET state = ? WHERE rid = ?', state, rid);
  }

  setTitle(rid: number, title: string): void {
    this.#store.run('UPDATE rooms SET title = ? WHERE rid = ?', title, rid);
  }

  /** Keeps what another way of joining adds to the one before. */
  setWay(rid: number, { creator, hints }: Pick<RoomRow, 'creator' | 'hints'>, secret: Uint8Array | null): void {
    this.#store.run(
      'UPDATE rooms SET creator = ?, hints = ?, secret = coalesce(?, secret) WHERE rid = ?',
      creator,
      hints.join(' '),
      secret,
      rid,
    );
  }

  setSecret(rid: number, secret: Uint8Array): void {
    this.#store.run('UPDATE rooms SET secret = ? WHERE rid = ?', secret, rid);
  }

  /** Moves the read cursor on; it never goes back. */
  markRead(rid: number, seq: number): void {
    this.#store.run(
      `UPDATE rooms SET read_seq = max(read_seq, min(max_seq, ?1)), (unread, mentions) =
         (SELECT rooms.unread - count(*), rooms.mentions - coalesce(sum(e.mention), 0) FROM room_entries e
          WHERE e.rid = rooms.rid AND e.seq > rooms.read_seq AND e.seq <= ?1
            AND e.counts = 1 AND e.void = 0 AND e.retracted = 0)
       WHERE rid = ?2`,
      seq,
      rid,
    );
  }

  /** Forgets everything of an agent that is no longer here. */
  removeAgent(aid: Aid): void {
    this.#store.transaction(() => {
      this.#store.run('DELETE FROM rooms WHERE aid = ?', aid);
      this.#store.run('DELETE FROM room_invites_in WHERE aid = ?', aid);
    });
  }

  /** How far a peer's replica has been read; 0 where it is another replica than the one of last time. */
  cursor(rid: number, peer: Aid, epoch: Uint8Array): number {
    const row = this.#store.one(
      'SELECT seq FROM room_peers WHERE rid = ? AND peer = ? AND epoch = ?',
      rid,
      peer,
      epoch,
    );
    return orZero(row, 'seq');
  }

  setCursor(rid: number, peer: Aid, epoch: Uint8Array, seq: number): void {
    this.#store.run(
      `INSERT INTO room_peers (rid, peer, epoch, seq) VALUES (?, ?, ?, ?)
       ON CONFLICT (rid, peer) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq`,
      rid,
      peer,
      epoch,
      seq,
    );
  }

  putInviteOut({ rid, target, nextAt, until, attempts }: InviteOut): void {
    this.#store.run(
      `INSERT INTO room_invites_out (rid, target, next_at, until, attempts) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (rid, target) DO UPDATE SET next_at = excluded.next_at, until = excluded.until, attempts = excluded.attempts`,
      rid,
      target,
      nextAt,
      until,
      attempts,
    );
  }

  /** Invitations that are to be sent again by `now`. */
  dueInvites(now: number, limit: number): InviteOut[] {
    return this.#store
      .all('SELECT * FROM room_invites_out WHERE next_at <= ? ORDER BY next_at LIMIT ?', now, limit)
      .map((row) => ({
        rid: integerOf(row, 'rid'),
        target: aidFromRow(row, 'target'),
        nextAt: integerOf(row, 'next_at'),
        until: integerOf(row, 'until'),
        attempts: integerOf(row, 'attempts'),
      }));
  }

  /** Whom a room has invited and has not heard of yet. */
  invitesOut(rid: number): { target: Aid; until: number }[] {
    return this.#store
      .all('SELECT target, until FROM room_invites_out WHERE rid = ? ORDER BY target', rid)
      .map((row) => ({ target: aidFromRow(row, 'target'), until: integerOf(row, 'until') }));
  }

  dropInviteOut(rid: number, target: Aid): void {
    this.#store.run('DELETE FROM room_invites_out WHERE rid = ? AND target = ?', rid, target);
  }

  /** Keeps an invitation that came, in place of an older one to the same room; the oldest go above `max`. */
  putInviteIn(invite: InviteIn, max: number): void {
    this.#store.transaction(() => {
      this.#store.run(
        `INSERT OR REPLACE INTO room_invites_in (aid, group_id, inviter, creator, title, secret, at)
         VALUES (?, ?, ?, ?, ?, ?, ?)`,
        invite.aid,
        hexToBlob(invite.groupId),
        invite.inviter,
        invite.creator,
        invite.title,
        invite.secret,
        invite.at,
      );
      this.#store.run(
        `DELETE FROM room_invites_in WHERE aid = ?1 AND group_id IN
           (SELECT group_id FROM room_invites_in WHERE aid = ?1 ORDER BY at DESC LIMIT -1 OFFSET ?2)`,
        invite.aid,
        max,
      );
    });
  }

  inviteIn(aid: Aid, groupId: string): InviteIn | null {
    const row = this.#store.one(
      'SELECT * FROM room_invites_in WHERE aid = ? AND group_id = ?',
      aid,
      hexToBlob(groupId),
    );
    return row === undefined ? null : inviteOf(row);
  }

  /** The invitations that came to an agent, oldest first. */
  invitesIn(aid: Aid): InviteIn[] {
    return this.#store.all('SELECT * FROM room_invites_in WHERE aid = ? ORDER BY at', aid).map(inviteOf);
  }

  dropInviteIn(aid: Aid, groupId: string): void {
    this.#store.run('DELETE FROM room_invites_in WHERE aid = ? AND group_id = ?', aid, hexToBlob(groupId));
  }
}
