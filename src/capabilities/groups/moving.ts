/**
 * Exports and imports the groups of an agent that moves to another node. Entries are signed, so an imported replica is
 * verified like entries from a member. A group whose replica does not fit into the document is fetched from its
 * members. See docs/moving.md.
 */
import { randomBytes } from 'node:crypto';
import { toBase64 } from '../../foundation/base64.ts';
import { toHex } from '../../foundation/bytes.ts';
import {
  EPOCH_BYTES,
  INVITATION_LIFE_MS,
  MAX_HINTS,
  MAX_INVITATIONS,
  MAX_TITLE_CHARS,
} from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type GroupsPart, MAX_MOVED_GROUP_BYTES } from '../../foundation/moving/agent-document.ts';
import { aidAt, badDocument, base64At, checkDistinct, hexBytes } from '../../foundation/moving/document-fields.ts';
import type { GroupEntryStore } from '../../foundation/store/group-entries.ts';
import type { GroupRow, InviteIn } from '../../foundation/store/groups.ts';
import { decodeEntry, type Entry, MAX_ENTRY_BYTES, proveSecret, verifyEntry } from './entry.ts';
import { GroupLog, Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

/** Entries that are read or verified in one step. */
const BATCH = 256;

type GroupsMovingDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'delegations'> & {
  /** Runs in the transaction of an import that adds entries to the log of other local members. */
  readonly admitted?: (log: GroupLog, added: readonly Entry[]) => void;
};

type GroupPart = GroupsPart['joined'][number];

/** The groups, and the IDs of the groups whose replicas are too large for the document. */
export function exportGroups(deps: GroupsMovingDependencies, aid: Aid): { part: GroupsPart; leftOut: string[] } {
  const { groups, entries } = deps;
  const rows = groups.list(aid).sort((a, b) => a.maxSeq - b.maxSeq);
  let group = MAX_MOVED_GROUP_BYTES;
  const leftOut: string[] = [];
  const joined = rows.map((row): GroupPart => {
    const replica = encodedEntries(entries, row, group);
    if (replica === null) leftOut.push(row.groupId);
    group -= replica?.bytes ?? 0;
    const { groupId, creator, title, secret, state, hints, readSeq, lastAt } = row;
    return {
      group_id: groupId,
      creator,
      title,
      secret_hex: secret === null ? null : toHex(secret),
      state,
      // Without the replica, the new node knows no other members.
      hints: replica === null ? new Replica(row, deps).others().slice(0, MAX_HINTS) : [...hints],
      read_seq: readSeq,
      last_at: lastAt,
      invited: groups.invitesOut(row.rid),
      entries_base64: replica?.encoded ?? [],
    };
  });
  const invitations = groups.invitesIn(aid).map(({ groupId: group_id, creator, title, secret, inviter, at }) => {
    return { group_id, creator, title, secret_hex: secret === null ? null : toHex(secret), inviter, at };
  });
  return { part: { joined, invitations }, leftOut };
}

/** All entries of a replica, or null if they have more than `max` bytes. */
function encodedEntries(entries: GroupEntryStore, { lid, maxSeq }: GroupRow, max: number) {
  const encoded: string[] = [];
  let bytes = 0;
  for (let after = 0; ; ) {
    const page = entries.bytesAfter(lid, after, BATCH);
    for (const one of page) {
      if (one.seq > maxSeq) return { encoded, bytes };
      after = one.seq;
      if (one.bytes === null) continue;
      bytes += one.bytes.length;
      if (bytes > max) return null;
      encoded.push(toBase64(one.bytes));
    }
    if (page.length < BATCH) return { encoded, bytes };
  }
}

interface PreparedGroup {
  readonly one: GroupPart;
  readonly creator: Aid;
  readonly hints: readonly Aid[];
  readonly invited: readonly { readonly target: Aid; readonly until: number }[];
  readonly entries: readonly Entry[];
}

/**
 * Checks groups of a document and verifies their entries.
 * @param now Unix milliseconds
 * @returns a function that stores the groups
 * @throws SvcError `bad_file`
 */
export async function importGroups(
  deps: GroupsMovingDependencies,
  aid: Aid,
  part: GroupsPart,
  now: number,
): Promise<() => void> {
  const groups = part.joined.map(({ group_id }) => group_id);
  checkDistinct('/groups/joined', groups);
  const invitations = part.invitations.map((one, i) => readInvitation(`/groups/invitations/${i}`, aid, one));
  const prepared: PreparedGroup[] = [];
  for (const [i, one] of part.joined.entries()) {
    const path = `/groups/joined/${i}`;
    checkTitle(path, one.title);
    prepared.push({
      one,
      creator: aidAt(`${path}/creator`, one.creator),
      hints: one.hints.map((hint, n) => aidAt(`${path}/hints/${n}`, hint)),
      invited: one.invited.map((out, n) => ({ ...out, target: aidAt(`${path}/invited/${n}/target`, out.target) })),
      entries: await verified(`${path}/entries_base64`, one, deps),
    });
  }
  return () => {
    for (const group of prepared) storeGroup(deps, aid, group, now);
    for (const invitation of invitations) deps.groups.putInviteIn(invitation, MAX_INVITATIONS);
  };
}

function checkTitle(path: string, title: string): void {
  if (title.length > MAX_TITLE_CHARS) throw badDocument(`${path}/title`, 'is too long');
}

function readInvitation(path: string, aid: Aid, one: GroupsPart['invitations'][number]): InviteIn {
  checkTitle(path, one.title);
  return {
    aid,
    groupId: one.group_id,
    inviter: aidAt(`${path}/inviter`, one.inviter),
    creator: aidAt(`${path}/creator`, one.creator),
    title: one.title,
    secret: one.secret_hex === null ? null : hexBytes(one.secret_hex),
    at: one.at,
  };
}

async function verified(path: string, one: GroupPart, { delegations }: GroupsMovingDependencies): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (let from = 0; from < one.entries_base64.length; from += BATCH) {
    const batch = one.entries_base64.slice(from, from + BATCH).map(async (text, i) => {
      try {
        const entry = decodeEntry(base64At(`${path}/${from + i}`, text, MAX_ENTRY_BYTES));
        await verifyEntry(entry, delegations);
        return entry;
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        throw badDocument(`${path}/${from + i}`, 'is not a signed entry');
      }
    });
    entries.push(...(await Promise.all(batch)));
  }
  return entries;
}

/**
 * Runs in the transaction of the import. The open logs of the node do not see the change before `Groups.imported`,
 * because the transaction may be rolled back.
 */
function storeGroup(deps: GroupsMovingDependencies, aid: Aid, group: PreparedGroup, now: number): void {
  const { groups } = deps;
  const { one, creator, hints, entries } = group;
  const isOver = one.state === 'left' || one.state === 'removed';
  if (isOver && entries.length === 0) return;
  const secret = one.secret_hex === null ? null : hexBytes(one.secret_hex);
  const shared = extendedLog(deps, group);
  if (isOver && shared !== null && !wasMember(shared, aid, entries)) return;
  const rid = groups.add({
    aid,
    groupId: one.group_id,
    creator,
    title: one.title,
    state: isOver ? one.state : 'joining',
    secret,
    hints: [...new Set([...hints, creator])].filter((hint) => hint !== aid).slice(0, MAX_HINTS),
    epoch: new Uint8Array(randomBytes(EPOCH_BYTES)),
    lastAt: Math.min(one.last_at, now),
  });
  const row = groups.byRid(rid);
  if (row === null || entries.length === 0) return;
  const replica = new Replica(row, deps);
  const proof = secret === null ? undefined : proveSecret(secret, one.group_id, aid);
  if (shared === null) replica.admit(entries, Number.POSITIVE_INFINITY, () => {});
  else if (isOver || shared.mayRead(aid, proof)) replica.attach();
  if (isOver) groups.setState(rid, one.state, lastPosition(deps, replica, entries));
  else if (replica.role(aid) !== null && one.state === 'member') groups.setState(rid, 'member');
  groups.markRead(rid, shared === null ? one.read_seq : readPosition(deps, replica, entries.slice(0, one.read_seq)));
  for (const { target, until } of group.invited)
    groups.putInviteOut({ rid, target, nextAt: now, until: Math.min(until, now + INVITATION_LIFE_MS), attempts: 0 });
}

/**
 * The log of other local members, with the entries that only the document has: no other member may have them yet.
 * Null if the group is not on this node. The old node has admitted the entries, so their times are not checked again.
 */
function extendedLog(deps: GroupsMovingDependencies, { one, entries }: PreparedGroup): GroupLog | null {
  const { groups, admitted } = deps;
  const lid = groups.filledLog(one.group_id);
  const [member] = lid === null ? [] : groups.sharing(lid);
  if (member === undefined) return null;
  const log = new GroupLog(member, deps.entries.lastSeq(member.lid), deps);
  log.admit(entries, Number.POSITIVE_INFINITY, (added) => admitted?.(log, added));
  return log;
}

/** Whether the log has the entry with which the agent of the document became a member. */
function wasMember(log: GroupLog, aid: Aid, entries: readonly Entry[]): boolean {
  return entries.some(
    ({ id, kind, author }) => author === aid && (kind === 'join' || kind === 'create') && log.has(id),
  );
}

/** The position of the last entry of the document, which is the last one that a former member may read. */
function lastPosition(
  { entries: store }: GroupsMovingDependencies,
  { lid }: Replica,
  entries: readonly Entry[],
): number {
  return store.fact(lid, entries.findLast(({ id }) => store.has(lid, id))?.id ?? '')?.seq ?? 0;
}

/** The position before the first entry of a shared log that the agent has not read. */
function readPosition({ entries: store }: GroupsMovingDependencies, { lid }: Replica, read: readonly Entry[]): number {
  const ids = new Set(read.map(({ id }) => id));
  for (let after = 0; ; ) {
    const page = store.idsAfter(lid, after, BATCH);
    for (const { seq, id } of page) {
      if (!ids.has(id)) return after;
      after = seq;
    }
    if (page.length < BATCH) return after;
  }
}
