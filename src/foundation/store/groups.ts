/** The tables of groups: replicas and their state. Times are Unix milliseconds. */
import { GROUP_STATES, type GroupState, INVITATION_LIFE_MS } from '../domain/groups.ts';
import type { DueTable } from '../due-queue.ts';
import type { Aid } from '../identity/aid.ts';
import { type DueColumns, dueRows } from './due-rows.ts';
import { aidFromRow, integerOf, orZero } from './row.ts';
import type { Store } from './store.ts';
import { aid, aids, blob, flag, hex, integer, nullable, type RowOf, Table, text, word } from './table.ts';

/** The groups of local agents, with columns of their logs. */
const GROUPS = `(
  SELECT groups.*, creator, title, epoch, last_at, min(max_seq, coalesce(up_to, max_seq)) AS max_seq
  FROM groups JOIN group_logs USING (lid))`;

/** A group of a local agent, with columns of its log. */
const GROUP = new Table(GROUPS, {
  rid: integer,
  aid,
  /** The log, which all local members share. */
  lid: integer,
  /** Lower-case hex. */
  groupId: hex,
  creator: aid,
  title: text,
  state: word(GROUP_STATES),
  secret: nullable(blob),
  /** Agents to contact while the log names no members. */
  hints: aids,
  /** Identifies the log. A peer with a cursor of another epoch starts over. */
  epoch: blob,
  lastAt: integer,
  /** The last entry that the agent may read. */
  maxSeq: integer,
  readSeq: integer,
  /** Unread entries of others after the read cursor, and how many of these mention the agent. */
  unread: integer,
  mentions: integer,
});

/** A received invitation. */
const INVITE_IN = new Table('group_invites_in', {
  aid,
  groupId: hex,
  inviter: aid,
  creator: aid,
  title: text,
  secret: nullable(blob),
  at: integer,
});
/** With whether the owner knows the inviter. */
const STORED_INVITE = new Table('group_invites_in', { ...INVITE_IN.columns, known: flag });

/** A sent invitation without an answer. */
const INVITE_OUT = new Table('group_invites_out', {
  rid: integer,
  target: aid,
  nextAt: integer,
  until: integer,
  attempts: integer,
});

export type GroupRow = RowOf<typeof GROUP>;
export type NewGroup = Omit<GroupRow, 'rid' | 'lid' | 'maxSeq' | 'readSeq' | 'unread' | 'mentions'>;
export type InviteIn = RowOf<typeof INVITE_IN>;
export type InviteOut = RowOf<typeof INVITE_OUT>;

export function hexToBlob(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

/** The columns of the two tables. */
const LOG = new Table('group_logs', {
  lid: integer,
  groupId: hex,
  creator: aid,
  title: text,
  epoch: blob,
  lastAt: integer,
});
const STORED_GROUP = new Table('groups', {
  rid: integer,
  aid,
  groupId: hex,
  lid: integer,
  state: word(GROUP_STATES),
  secret: nullable(blob),
  hints: aids,
});

/** An invitation that the recipient has received is planned for its end, which stays. */
const INVITES_OUT: DueColumns = {
  table: 'group_invites_out',
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
    this.invites = dueRows(store, INVITES_OUT, INVITE_OUT.read, (invite, nextAt) =>
      this.putInviteOut({ ...invite, nextAt, attempts: invite.attempts + 1 }),
    );
  }

  transaction<T>(work: () => T): T {
    return this.#store.transaction(work);
  }

  /** Stores a group of a local agent, with an empty log. Returns its row ID. */
  add(group: NewGroup): number {
    return this.#store.transaction(() => {
      const { lid } = LOG.add(this.#store, group);
      return STORED_GROUP.add(this.#store, { ...group, lid }).rid;
    });
  }

  find(aid: Aid, groupId: string): GroupRow | null {
    return GROUP.one(this.#store)`WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
  }

  byRid(rid: number): GroupRow | null {
    return GROUP.one(this.#store)`WHERE rid = ${rid}`;
  }

  list(aid: Aid): GroupRow[] {
    return GROUP.all(this.#store)`WHERE aid = ${aid} ORDER BY rid`;
  }

  /** The groups of local agents that share a log. */
  sharing(lid: number): GroupRow[] {
    return GROUP.all(this.#store)`WHERE lid = ${lid} ORDER BY rid`;
  }

  /** The local agents that share a log. */
  localAids(lid: number): Set<Aid> {
    return new Set(this.#store.all`SELECT aid FROM groups WHERE lid = ${lid}`.map((row) => aidFromRow(row, 'aid')));
  }

  /** The log of a group that has entries, or null if there is none on this node. */
  filledLog(groupId: string): number | null {
    const row = this.#store.one`SELECT lid FROM group_logs WHERE group_id = ${hexToBlob(groupId)} AND max_seq > 0`;
    return row === undefined ? null : integerOf(row, 'lid');
  }

  /** Replaces the empty log of a group with one that other local agents have filled. */
  attach(rid: number, lid: number): void {
    this.#store.run`UPDATE groups SET lid = ${lid} WHERE rid = ${rid}`;
    this.#recount(rid);
  }

  #recount(rid: number): void {
    this.#store.run`
      UPDATE groups SET (unread, mentions) =
        (SELECT count(*), count(m.seq) FROM group_entries e
         LEFT JOIN group_mentions m ON m.lid = e.lid AND m.aid = groups.aid AND m.seq = e.seq
         WHERE e.lid = groups.lid AND e.seq > groups.read_seq
           AND e.counts = 1 AND e.void = 0 AND e.retracted = 0 AND e.author <> groups.aid)
      WHERE rid = ${rid}`;
  }

  /** Groups that an agent is a member of or is joining. */
  count(aid: Aid): number {
    const row = this.#store.one`
      SELECT count(*) AS n FROM groups WHERE aid = ${aid} AND state IN ('joining', 'member')`;
    return orZero(row, 'n');
  }

  /** Deletes groups that an agent left or was removed from, except the newest ones. Returns the deleted row IDs. */
  deletePast(aid: Aid, keep: number): number[] {
    const rows = this.#store.all`
      DELETE FROM groups WHERE rid IN
        (SELECT rid FROM groups JOIN group_logs USING (lid) WHERE aid = ${aid} AND state IN ('left', 'removed')
         ORDER BY last_at DESC, rid DESC LIMIT -1 OFFSET ${keep}) RETURNING rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /**
   * Row IDs of the groups to synchronize: one member for each log, and every joining agent. Without a member, an agent
   * that left since `leftSince`.
   */
  syncedRids(leftSince: number): number[] {
    const rows = this.#store.all`
      SELECT min(rid) AS rid FROM groups WHERE state = 'member' GROUP BY lid
      UNION ALL SELECT rid FROM groups WHERE state = 'joining'
      UNION ALL SELECT min(rid) FROM groups JOIN group_logs USING (lid)
        WHERE state = 'left' AND last_at >= ${leftSince}
          AND NOT EXISTS (SELECT 1 FROM groups other WHERE other.lid = groups.lid AND other.state = 'member')
        GROUP BY groups.lid
      ORDER BY rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /** @param upTo the last entry that a former member may read. Default: the newest one */
  setState(rid: number, state: GroupState, upTo: number | null = null): void {
    const limited = this.#store.one`SELECT 1 FROM groups WHERE rid = ${rid} AND up_to IS NOT NULL`;
    this.#store.run`
      UPDATE groups SET state = ${state}, up_to = CASE ${state} WHEN 'member' THEN NULL WHEN 'joining' THEN up_to
        ELSE coalesce(${upTo}, up_to, (SELECT max_seq FROM group_logs WHERE lid = groups.lid)) END
      WHERE rid = ${rid}`;
    // Entries that the agent could not read did not count.
    if (state === 'member' && limited !== undefined) this.#recount(rid);
  }

  setTitle(lid: number, title: string): void {
    this.#store.run`UPDATE group_logs SET title = ${title} WHERE lid = ${lid}`;
  }

  /** Adds the data of another invitation to a group. The creator changes only while the log is empty. */
  setJoinInfo(rid: number, { creator, hints }: Pick<GroupRow, 'creator' | 'hints'>, secret: Uint8Array | null): void {
    this.#store.transaction(() => {
      this.#store.run`
        UPDATE groups SET hints = ${hints.join(' ')}, secret = coalesce(${secret}, secret) WHERE rid = ${rid}`;
      this.#store.run`
        UPDATE group_logs SET creator = ${creator}
        WHERE lid = (SELECT lid FROM groups WHERE rid = ${rid}) AND max_seq = 0`;
    });
  }

  setSecret(rid: number, secret: Uint8Array): void {
    this.#store.run`UPDATE groups SET secret = ${secret} WHERE rid = ${rid}`;
  }

  /** Stores the join secret of all local members. */
  setSecrets(lid: number, secret: Uint8Array): void {
    this.#store.run`UPDATE groups SET secret = ${secret} WHERE lid = ${lid} AND state = 'member'`;
  }

  /** Moves the read cursor forward, never back. */
  markRead(rid: number, seq: number): void {
    this.#store.run`
      UPDATE groups SET
        read_seq = max(read_seq, (SELECT min(max_seq, coalesce(up_to, max_seq), ${seq}) FROM group_logs WHERE lid = groups.lid)),
        (unread, mentions) =
          (SELECT groups.unread - count(*), groups.mentions - count(m.seq) FROM group_entries e
           LEFT JOIN group_mentions m ON m.lid = e.lid AND m.aid = groups.aid AND m.seq = e.seq
           WHERE e.lid = groups.lid AND e.seq > groups.read_seq AND e.seq <= min(${seq}, coalesce(groups.up_to, ${seq}))
             AND e.counts = 1 AND e.void = 0 AND e.retracted = 0 AND e.author <> groups.aid)
      WHERE rid = ${rid}`;
  }

  /** Deletes all groups and invitations of a deleted agent. */
  removeAgent(aid: Aid): void {
    this.#store.transaction(() => {
      this.#store.run`DELETE FROM groups WHERE aid = ${aid}`;
      this.#store.run`DELETE FROM group_invites_in WHERE aid = ${aid}`;
    });
  }

  /** The position in a peer's replica up to which it was read; 0 if the peer has another replica now. */
  cursor(lid: number, peer: Aid, epoch: Uint8Array): number {
    const row = this.#store.one`
      SELECT seq FROM group_peers WHERE lid = ${lid} AND peer = ${peer} AND epoch = ${epoch}`;
    return orZero(row, 'seq');
  }

  /** True if the replica of another agent was read in any group of this agent. */
  hasMet(aid: Aid, peer: Aid): boolean {
    const row = this.#store.one`
      SELECT 1 FROM groups JOIN group_peers USING (lid) WHERE groups.aid = ${aid} AND group_peers.peer = ${peer} LIMIT 1`;
    return row !== undefined;
  }

  setCursor(lid: number, peer: Aid, epoch: Uint8Array, seq: number): void {
    this.#store.run`
      INSERT OR REPLACE INTO group_peers (lid, peer, epoch, seq) VALUES (${lid}, ${peer}, ${epoch}, ${seq})`;
  }

  putInviteOut(invite: InviteOut): void {
    INVITE_OUT.replace(this.#store, invite);
  }

  /** Agents with an open invitation to a group. */
  invitesOut(rid: number): Pick<InviteOut, 'target' | 'until'>[] {
    const invites = INVITE_OUT.all(this.#store)`WHERE rid = ${rid} ORDER BY target`;
    return invites.map(({ target, until }) => ({ target, until }));
  }

  /** Deletes the invitations of an agent by all local agents that share a log. */
  dropInvitesOut(lid: number, target: Aid): void {
    this.#store.run`
      DELETE FROM group_invites_out
      WHERE target = ${target} AND rid IN (SELECT rid FROM groups WHERE lid = ${lid})`;
  }

  dropInviteOut(rid: number, target: Aid): void {
    this.#store.run`DELETE FROM group_invites_out WHERE rid = ${rid} AND target = ${target}`;
  }

  /** Stores a received invitation and replaces an older one to the same group. Deletes the oldest ones above `max`. */
  putInviteIn(invite: InviteIn, max: number, isKnown = false): void {
    const { aid } = invite;
    this.#store.transaction(() => {
      STORED_INVITE.insert(
        this.#store,
        { ...invite, known: isKnown },
        `ON CONFLICT (aid, group_id) DO UPDATE SET inviter = excluded.inviter, creator = excluded.creator,
          title = excluded.title, secret = excluded.secret, at = excluded.at, known = excluded.known
        WHERE excluded.known >= known`,
      );
      this.#store.run`
        DELETE FROM group_invites_in WHERE aid = ${aid} AND group_id IN (
          SELECT group_id FROM (
            SELECT *, row_number() OVER (PARTITION BY inviter ORDER BY at DESC) AS place
            FROM group_invites_in WHERE aid = ${aid}
          )
          ORDER BY known DESC, place, at DESC LIMIT -1 OFFSET ${max})`;
    });
  }

  inviteIn(aid: Aid, groupId: string): InviteIn | null {
    return INVITE_IN.one(this.#store)`WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
  }

  /** The received invitations of an agent, oldest first. */
  invitesIn(aid: Aid): InviteIn[] {
    return INVITE_IN.all(this.#store)`WHERE aid = ${aid} ORDER BY at`;
  }

  dropInviteIn(aid: Aid, groupId: string): void {
    this.#store.run`DELETE FROM group_invites_in WHERE aid = ${aid} AND group_id = ${hexToBlob(groupId)}`;
  }
}
