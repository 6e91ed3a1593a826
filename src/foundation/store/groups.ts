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
  forgetPast(aid: Aid, keep: number): number[] {
    const rows = this.#store.all`
      DELETE FROM rooms WHERE rid IN
        (SELECT rid FROM rooms WHERE aid = ${aid} AND state IN ('left', 'removed')
         ORDER BY last_at DESC, rid DESC LIMIT -1 OFFSET ${keep}) RETURNING rid`;
    return rows.map((row) => integerOf(row, 'rid'));
  }

  /** Row IDs of the synchronized groups, including groups that the agent left since `leftSince`. */
  rids(leftSince: number): number[] {
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

