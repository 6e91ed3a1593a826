/** The tables of groups: replicas and their state. Times are Unix milliseconds. */
import { toHex } from '../bytes.ts';
import { GROUP_STATES, type GroupState, INVITATION_LIFE_MS } from '../domain/groups.ts';
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { type DueColumns, dueRows } from './due-rows.ts';
import { aidFromRow, aidsOf, blobOf, integerOf, orNull, orZero, textOf, wordOf } from './row.ts';
import type { Row, Store } from './store.ts';

export type GroupRow = Readonly<ReturnType<typeof groupOf>>;

export type NewGroup = Omit<GroupRow, 'rid' | 'lid' | 'maxSeq' | 'readSeq' | 'unread' | 'mentions'>;

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
    /** The log, which all local members share. */
    lid: integerOf(row, 'lid'),
    /** Lower-case hex. */
    groupId: toHex(blobOf(row, 'group_id')),
    creator: aidFromRow(row, 'creator'),
    title: textOf(row, 'title'),
    state: wordOf(row, 'state', GROUP_STATES),
    secret: orNull(blobOf, row, 'secret'),
    /** Agents to contact while the log names no members. */
    hints: aidsOf(row, 'hints'),
    /** Identifies the log. A peer with a cursor of another epoch starts over. */
    epoch: blobOf(row, 'epoch'),
    lastAt: integerOf(row, 'last_at'),
    /** The last entry that the agent may read. */
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

const SELECT = `
  SELECT rooms.*, creator, title, epoch, last_at, min(max_seq, coalesce(up_to, max_seq)) AS max_seq
  FROM rooms JOIN room_logs USING (lid)`;

/** An invitation that the recipient has received is planned for its end, which stays. */
const INVITES_OUT: DueColumns = {
  table: 'room_invites_out',
  dueAt: 'next_at',
  id: "rid || ' ' || target",
  key: 'target',
  movable: `next_at < until OR until > ?1 + ${INVITATION_LIFE_MS}`,
};

export class GroupStore {
  readonly #store: Store;
  /** The sent invitations, by recipient. */
  readonly invites: DueTable<InviteOut>;

  constructor(store: Store) {
    this.#store = store;
    this.invites = dueRows(store, INVITES_OUT, inviteOutOf, (invite, nextAt) =>
      this.putInviteOut({ ...invite, nextAt, attempts: invite.attempts + 1 }),
    );
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Stores a group of a local agent, with an empty log. Returns its row ID. */
  add(group: NewGroup): number {
    const { aid, creator, title, state, secret, hints, epoch, lastAt } = group;
    const groupId = hexToBlob(group.groupId);
    return this.#store.transaction(() => {
      const log = this.#store.one`
        INSERT INTO room_logs (group_id, creator, title, epoch, last_at)
        VALUES (${groupId}, ${creator}, ${title}, ${epoch}, ${lastAt}) RETURNING lid`;
      const row = this.#store.one`
        INSERT INTO rooms (aid, group_id, lid, state, secret, hints)
        VALUES (${aid}, ${groupId}, ${integerOf(log, 'lid')}, ${state}, ${secret}, ${hints.join(' ')}) RETURNING rid`;
      return integerOf(row, 'rid');
    });
  }

  find(aid: Aid, groupId: string): GroupRow | null {
    const row = this.#store.one(`${SELECT} WHERE aid = ? AND rooms.group_id = ?`, aid, hexToBlob(groupId));
    return row === undefined ? null : groupOf(row);
  }

  byRid(rid: number): GroupRow | null {
    const row = this.#store.one(`${SELECT} WHERE rid = ?`, rid);
    return row === undefined ? null : groupOf(row);
  }

  list(aid: Aid): GroupRow[] {
    return this.#store.all(`${SELECT} WHERE aid = ? ORDER BY rid`, aid).map(groupOf);
  }

  /** The groups of local agents that share a log. */
  sharing(lid: number): GroupRow[] {
    return this.#store.all(`${SELECT} WHERE rooms.lid = ? ORDER BY rid`, lid).map(groupOf);
  }

  /** The local agents that share a log. */
  localAids(lid: number): Set<Aid> {
    return new Set(this.#store.all`SELECT aid FROM rooms WHERE lid = ${lid}`.map((row) => aidFromRow(row, 'aid')));
  }

  /** The log of a group that has entries, or null if there is none on this node. */
  filledLog(groupId: string): number | null {
    const row = this.#store.one`SELECT lid FROM room_logs WHERE group_id = ${hexToBlob(groupId)} AND max_seq > 0`;
    return row === undefined ? null : integerOf(row, 'lid');
  }

  /** Replaces the empty log of a group with one that other local agents have filled. */
  attach(rid: number, lid: number): void {
    this.#store.run`UPDATE rooms SET lid = ${lid} WHERE rid = ${rid}`;
    this.#recount(rid);
  }

  #recount(rid: number): void {
    this.#store.run`
      UPDATE rooms SET (unread, mentions) =
        (SELECT count(*), count(m.seq) FROM room_entries e
         LEFT JOIN room_mentions m ON m.lid = e.lid AND m.aid = rooms.aid AND m.seq = e.seq
         WHERE e.lid = rooms.lid AND e.seq > rooms.read_seq
           AND e.counts = 1 AND e.void = 0 AND e.retracted = 0 AND e.author <> rooms.aid)
      WHERE rid = ${rid}`;
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
        (SELECT rid FROM rooms JOIN room_logs USING (lid) WHERE aid = ${aid} AND state IN ('left', 'removed')
         ORDER BY last_at DESC, rid DESC LIMIT -1 OFFSET ${keep}) RETURNING rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /**
   * Row IDs of the groups to synchronize: one member for each log, and every joining agent. Without a member, an agent
   * that left since `leftSince`.
   */
  syncedRids(leftSince: number): number[] {
    const rows = this.#store.all`
      SELECT min(rid) AS rid FROM rooms WHERE state = 'member' GROUP BY lid
      UNION ALL SELECT rid FROM rooms WHERE state = 'joining'
      UNION ALL SELECT min(rid) FROM rooms JOIN room_logs USING (lid)
        WHERE state = 'left' AND last_at >= ${leftSince}
          AND NOT EXISTS (SELECT 1 FROM rooms other WHERE other.lid = rooms.lid AND other.state = 'member')
        GROUP BY rooms.lid
      ORDER BY rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /** @param upTo the last entry that a former member may read. Default: the newest one */
  setState(rid: number, state: GroupState, upTo: number | null = null): void {
    const limited = this.#store.one`SELECT 1 FROM rooms WHERE rid = ${rid} AND up_to IS NOT NULL`;
    this.#store.run`
      UPDATE rooms SET state = ${state}, up_to = CASE ${state} WHEN 'member' THEN NULL WHEN 'joining' THEN up_to
        ELSE coalesce(${upTo}, up_to, (SELECT max_seq FROM room_logs WHERE lid = rooms.lid)) END
      WHERE rid = ${rid}`;
    // Entries that the agent could not read did not count.
    if (state === 'member' && limited !== undefined) this.#recount(rid);
  }

  setTitle(lid: number, title: string): void {
    this.#store.run`UPDATE room_logs SET title = ${title} WHERE lid = ${lid}`;
  }

  /** Adds the data of another invitation to a group. The creator changes only while the log is empty. */
  setJoinInfo(rid: number, { creator, hints }: Pick<GroupRow, 'creator' | 'hints'>, secret: Uint8Array | null): void {
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE rooms SET hints = ${hints.join(' ')}, secret = coalesce(${secret}, secret) WHERE rid = ${rid}`;
      this.#store.run`
        UPDATE room_logs SET creator = ${creator}
        WHERE lid = (SELECT lid FROM rooms WHERE rid = ${rid}) AND max_seq = 0`;
    });
  }

  setSecret(rid: number, secret: Uint8Array): void {
    this.#store.run`UPDATE rooms SET secret = ${secret} WHERE rid = ${rid}`;
  }

  /** Stores the join secret of all local members. */
  setSecrets(lid: number, secret: Uint8Array): void {
    this.#store.run`UPDATE rooms SET secret = ${secret} WHERE lid = ${lid} AND state = 'member'`;
  }

  /** Moves the read cursor forward, never back. */
  markRead(rid: number, seq: number): void {
    this.#store.run`
      UPDATE rooms SET
        read_seq = max(read_seq, (SELECT min(max_seq, coalesce(up_to, max_seq), ${seq}) FROM room_logs WHERE lid = rooms.lid)),
        (unread, mentions) =
          (SELECT rooms.unread - count(*), rooms.mentions - count(m.seq) FROM room_entries e
           LEFT JOIN room_mentions m ON m.lid = e.lid AND m.aid = rooms.aid AND m.seq = e.seq
           WHERE e.lid = rooms.lid AND e.seq > rooms.read_seq AND e.seq <= min(${seq}, coalesce(rooms.up_to, ${seq}))
             AND e.counts = 1 AND e.void = 0 AND e.retracted = 0 AND e.author <> rooms.aid)
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
  cursor(lid: number, peer: Aid, epoch: Uint8Array): number {
    const row = this.#store.one`
      SELECT seq FROM room_peers WHERE lid = ${lid} AND peer = ${peer} AND epoch = ${epoch}`;
    return orZero(row, 'seq');
  }

  /** True if the replica of another agent was read in any group of this agent. */
  hasMet(aid: Aid, peer: Aid): boolean {
    const row = this.#store.one`
      SELECT 1 FROM rooms JOIN room_peers USING (lid) WHERE rooms.aid = ${aid} AND room_peers.peer = ${peer} LIMIT 1`;
    return row !== undefined;
  }

  setCursor(lid: number, peer: Aid, epoch: Uint8Array, seq: number): void {
    this.#store.run`
      INSERT OR REPLACE INTO room_peers (lid, peer, epoch, seq) VALUES (${lid}, ${peer}, ${epoch}, ${seq})`;
  }

  putInviteOut({ rid, target, nextAt, until, attempts }: InviteOut): void {
    this.#store.run`
      INSERT OR REPLACE INTO room_invites_out (rid, target, next_at, until, attempts)
      VALUES (${rid}, ${target}, ${nextAt}, ${until}, ${attempts})`;
  }

  /** Agents with an open invitation to a group. */
  invitesOut(rid: number): { target: Aid; until: number }[] {
    const rows = this.#store.all`SELECT target, until FROM room_invites_out WHERE rid = ${rid} ORDER BY target`;
    return rows.map((row) => ({ target: aidFromRow(row, 'target'), until: integerOf(row, 'until') }));
  }

  /** Deletes the invitations of an agent by all local agents that share a log. */
  dropInvitesOut(lid: number, target: Aid): void {
    this.#store.run`
      DELETE FROM room_invites_out
      WHERE target = ${target} AND rid IN (SELECT rid FROM rooms WHERE lid = ${lid})`;
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
