/** The tables of groups: replicas and their state. Times are Unix milliseconds. */
import { toHex } from '../bytes.ts';
import { GROUP_STATES, type GroupState } from '../domain/groups.ts';
import type { Aid } from '../identity/aid.ts';
import { aidFromRow, aidsOf, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type GroupRow = Readonly<ReturnType<typeof groupOf>>;

export type NewGroup = Omit<GroupRow, 'rid' | 'maxSeq' | 'readSeq' | 'unread' | 'mentions'>;

/** A received invitation. */
export type InviteIn = Readonly<ReturnType<typeof inviteInOf>>;

/** A sent invitation without an answer. */
export type InviteOut = Readonly<ReturnType<typeof inviteOutOf>>;

export function hexToBlob(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

function groupOf(row: Row) {
  return {
    rid: integerOf(row, 'rid'),
    aid: aidFromRow(row, 'aid'),
    /** Lower-case hex. */
    groupId: toHex(blobOf(row, 'group_id')),
    creator: aidFromRow(row, 'creator'),
    title: textOf(row, 'title'),
    state: wordOf(row, 'state', GROUP_STATES),
    secret: orNull(blobOf, row, 'secret'),
    /** Agents to contact while the log names no members. */
    hints: aidsOf(row, 'hints'),
    /** Identifies this replica. A peer with a cursor of another epoch starts over. */
    epoch: blobOf(row, 'epoch'),
    lastAt: integerOf(row, 'last_at'),
    maxSeq: integerOf(row, 'max_seq'),
    readSeq: integerOf(row, 'read_seq'),
    /** Unread entries of others after the read cursor, and how many of these mention the agent. */
    unread: integerOf(row, 'unread'),
    mentions: integerOf(row, 'mentions'),
  };
}

function inviteInOf(row: Row) {
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

function inviteOutOf(row: Row) {
  return {
    rid: integerOf(row, 'rid'),
    target: aidFromRow(row, 'target'),
    nextAt: integerOf(row, 'next_at'),
    until: integerOf(row, 'until'),
    attempts: integerOf(row, 'attempts'),
  };
}

export class GroupStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Stores a group of a local agent. Returns its row ID. */
  add(group: NewGroup): number {
    const { aid, groupId, creator, title, state, secret, hints, epoch, lastAt } = group;
    const row = this.#store.one`
      INSERT INTO rooms (aid, group_id, creator, title, state, secret, hints, epoch, last_at)
      VALUES (${aid}, ${hexToBlob(groupId)}, ${creator}, ${title}, ${state}, ${secret}, ${hints.join(' ')}, ${epoch},
        ${lastAt}) RETURNING rid`;
    return integerOf(row, 'rid');
  }

  find(aid: Aid, groupId: string): GroupRow | null {
    const row = this.#store.one`SELECT * FROM rooms WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
    return row === undefined ? null : groupOf(row);
  }

  byRid(rid: number): GroupRow | null {
    const row = this.#store.one`SELECT * FROM rooms WHERE rid = ${rid}`;
    return row === undefined ? null : groupOf(row);
  }

  list(aid: Aid): GroupRow[] {
    return this.#store.all`SELECT * FROM rooms WHERE aid = ${aid} ORDER BY rid`.map(groupOf);
  }

  /** Groups that an agent is a member of or is joining. */
  count(aid: Aid): number {
    const row = this.#store.one`
      SELECT count(*) AS n FROM rooms WHERE aid = ${aid} AND state IN ('joining', 'member')`;
    return orZero(row, 'n');
  }

  /** Deletes groups that an agent left or was removed from, except the newest ones. Returns the deleted row IDs. */
  deletePast(aid: Aid, keep: number): number[] {
    const rows = this.#store.all`
      DELETE FROM rooms WHERE rid IN
        (SELECT rid FROM rooms WHERE aid = ${aid} AND state IN ('left', 'removed')
         ORDER BY last_at DESC, rid DESC LIMIT -1 OFFSET ${keep}) RETURNING rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /** Row IDs of the synchronized groups, including groups that the agent left since `leftSince`. */
  syncedRids(leftSince: number): number[] {
    const rows = this.#store.all`
      SELECT rid FROM rooms
      WHERE state IN ('joining', 'member') OR (state = 'left' AND last_at >= ${leftSince}) ORDER BY rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  setState(rid: number, state: GroupState): void {
    this.#store.run`UPDATE rooms SET state = ${state} WHERE rid = ${rid}`;
  }

  setTitle(rid: number, title: string): void {
    this.#store.run`UPDATE rooms SET title = ${title} WHERE rid = ${rid}`;
  }

  /** Adds the data of another invitation to a group. */
  setJoinInfo(rid: number, { creator, hints }: Pick<GroupRow, 'creator' | 'hints'>, secret: Uint8Array | null): void {
    this.#store.run`
      UPDATE rooms SET creator = ${creator}, hints = ${hints.join(' ')}, secret = coalesce(${secret}, secret)
      WHERE rid = ${rid}`;
  }

  setSecret(rid: number, secret: Uint8Array): void {
    this.#store.run`UPDATE rooms SET secret = ${secret} WHERE rid = ${rid}`;
  }

  /** Moves the read cursor forward, never back. */
  markRead(rid: number, seq: number): void {
    this.#store.run`
      UPDATE rooms SET read_seq = max(read_seq, min(max_seq, ${seq})), (unread, mentions) =
        (SELECT rooms.unread - count(*), rooms.mentions - coalesce(sum(e.mention), 0) FROM room_entries e
         WHERE e.rid = rooms.rid AND e.seq > rooms.read_seq AND e.seq <= ${seq}
           AND e.counts = 1 AND e.void = 0 AND e.retracted = 0)
      WHERE rid = ${rid}`;
  }

  /** Deletes all groups and invitations of a deleted agent. */
  removeAgent(aid: Aid): void {
    this.#store.transaction(() => {
      this.#store.run`DELETE FROM rooms WHERE aid = ${aid}`;
      this.#store.run`DELETE FROM room_invites_in WHERE aid = ${aid}`;
    });
  }

  /** The position in a peer's replica up to which it was read; 0 if the peer has another replica now. */
  cursor(rid: number, peer: Aid, epoch: Uint8Array): number {
    const row = this.#store.one`
      SELECT seq FROM room_peers WHERE rid = ${rid} AND peer = ${peer} AND epoch = ${epoch}`;
    return orZero(row, 'seq');
  }

  /** True if the replica of another agent was read in any group of this agent. */
  hasMet(aid: Aid, peer: Aid): boolean {
    const row = this.#store.one`
      SELECT 1 FROM rooms JOIN room_peers USING (rid) WHERE rooms.aid = ${aid} AND room_peers.peer = ${peer} LIMIT 1`;
    return row !== undefined;
  }

  setCursor(rid: number, peer: Aid, epoch: Uint8Array, seq: number): void {
    this.#store.run`
      INSERT OR REPLACE INTO room_peers (rid, peer, epoch, seq) VALUES (${rid}, ${peer}, ${epoch}, ${seq})`;
  }

  putInviteOut({ rid, target, nextAt, until, attempts }: InviteOut): void {
    this.#store.run`
      INSERT OR REPLACE INTO room_invites_out (rid, target, next_at, until, attempts)
      VALUES (${rid}, ${target}, ${nextAt}, ${until}, ${attempts})`;
  }

  /** Sent invitations that are due again. */
  dueInvites(now: number, limit: number): InviteOut[] {
    const rows = this.#store.all`
      SELECT * FROM room_invites_out WHERE next_at <= ${now} ORDER BY next_at LIMIT ${limit}`;
    return rows.map(inviteOutOf);
  }

  /** Agents with an open invitation to a group. */
  invitesOut(rid: number): { target: Aid; until: number }[] {
    const rows = this.#store.all`SELECT target, until FROM room_invites_out WHERE rid = ${rid} ORDER BY target`;
    return rows.map((row) => ({ target: aidFromRow(row, 'target'), until: integerOf(row, 'until') }));
  }

  dropInviteOut(rid: number, target: Aid): void {
    this.#store.run`DELETE FROM room_invites_out WHERE rid = ${rid} AND target = ${target}`;
  }

  /** Stores a received invitation and replaces an older one to the same group. Deletes the oldest ones above `max`. */
  putInviteIn(invite: InviteIn, max: number, isKnown = false): void {
    const { aid, groupId, inviter, creator, title, secret, at } = invite;
    this.#store.transaction(() => {
      this.#store.run`
        INSERT INTO room_invites_in (aid, group_id, inviter, creator, title, secret, at, known)
        VALUES (${aid}, ${hexToBlob(groupId)}, ${inviter}, ${creator}, ${title}, ${secret}, ${at}, ${Number(isKnown)})
        ON CONFLICT (aid, group_id) DO UPDATE SET inviter = excluded.inviter, creator = excluded.creator,
          title = excluded.title, secret = excluded.secret, at = excluded.at, known = excluded.known
        WHERE excluded.known >= known`;
      this.#store.run`
        DELETE FROM room_invites_in WHERE aid = ${aid} AND group_id IN (
          SELECT group_id FROM (
            SELECT *, row_number() OVER (PARTITION BY inviter ORDER BY at DESC) AS place
            FROM room_invites_in WHERE aid = ${aid}
          )
          ORDER BY known DESC, place, at DESC LIMIT -1 OFFSET ${max})`;
    });
  }

  inviteIn(aid: Aid, groupId: string): InviteIn | null {
    const row = this.#store.one`SELECT * FROM room_invites_in WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
    return row === undefined ? null : inviteInOf(row);
  }

  /** The received invitations of an agent, oldest first. */
  invitesIn(aid: Aid): InviteIn[] {
    return this.#store.all`SELECT * FROM room_invites_in WHERE aid = ${aid} ORDER BY at`.map(inviteInOf);
  }

  dropInviteIn(aid: Aid, groupId: string): void {
    this.#store.run`DELETE FROM room_invites_in WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
  }
}
