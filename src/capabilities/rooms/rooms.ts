/** Rooms: signed logs that their members share. See docs/rooms.md. */
import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../../foundation/clock.ts';
import {
  EPOCH_BYTES,
  HASH_BYTES,
  JOIN_SECRET_BYTES,
  MAX_ENTRIES_PAGE,
  MAX_HINTS,
  MAX_MEMBERS,
  MAX_PAST_ROOMS,
  MAX_ROOMS,
} from '../../foundation/domain/rooms.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { type EntryFilter, MAX_SCANNED, type RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomRow, RoomStore } from '../../foundation/store/rooms.ts';
import type { Links } from '../../network/links/types.ts';
import { type Entry, type EntryContent, groupIdOf, joinKey, proveSecret, signEntry } from './entry.ts';
import { Invitations } from './invitations.ts';
import { type JoinRequest, type Way, wayOf } from './joining.ts';
import { type ControlKind, isControl } from './kinds.ts';
import { announce, settleState } from './notices.ts';
import { type Admission, Replica } from './replica.ts';
import { roomLinkText } from './room-link.ts';
import { RoomLinks } from './room-links.ts';
import { Spread } from './spread.ts';
import type { Draft, LocalIdentity, NotesPort, ObjectsPort, RoomHead, RoomPage, RoomSummary } from './types.ts';
import { entryView, refusal, summaryOf } from './views.ts';

/** Entries of one room beyond which its members add nothing: what is under way may still come in. */
export const MAX_APPENDED = 200_000;
/** Control entries without an operation of their own. */
const BY_APPEND: readonly string[] = ['remove', 'role', 'rekey'] satisfies readonly ControlKind[];
/** Peers that a joiner tries before it says that joining goes on. */
const MAX_TRIED = 4;
/** Milliseconds for which others are told that an agent left. */
const LEFT_MS: number = 7 * 24 * 3600_000;
/** Milliseconds between two looks at invitations that are to be sent again. */
const INVITE_TICK_MS = 15_000;

export interface RoomsDependencies {
  readonly rooms: RoomStore;
  readonly entries: RoomEntryStore;
  readonly links: Links;
  readonly notes: NotesPort;
  readonly objects?: ObjectsPort;
  readonly delegations: Pick<DelegationVerifier, 'verifyAsync'>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  /** The identity of a registered agent here; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
  /** A number from 0 to below 1. */
  random(): number;
}

export interface ReadQuery extends EntryFilter {
  readonly afterSeq: number;
  readonly limit: number;
}

export class Rooms implements Component {
  readonly #deps: RoomsDependencies;
  readonly #replicas = new Map<number, Replica>();
  readonly #links: RoomLinks;
  readonly #spread: Spread;
  readonly #invitations: Invitations;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(dependencies: RoomsDependencies) {
    const deps = { ...dependencies, log: dependencies.log.child('rooms') };
    this.#deps = deps;
    this.#invitations = new Invitations(deps);
    this.#links = new RoomLinks({
      ...deps,
      replica: (aid, groupId) => this.#served(aid, groupId),
      admit: (replica, entries, from) => this.#admit(replica, entries, from),
      proof: (replica) => this.#proof(replica),
      removed: (replica) => deps.rooms.setState(replica.rid, 'removed'),
      met: (peer) => this.#spread.met(peer),
    });
    this.#spread = new Spread({
      ...deps,
      links: this.#links,
      rids: () => deps.rooms.rids(deps.clock.now() - LEFT_MS),
      replica: (rid) => this.#replicaOf(deps.rooms.byRid(rid)),
      peers: (replica) => this.#peers(replica),
      isJoining: (replica) => deps.rooms.byRid(replica.rid)?.state === 'joining',
      synced: (replica) => this.#enter(replica),
    });
  }

  async start(): Promise<void> {
    this.#spread.start();
    this.#inviteTick();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#links.stop();
    this.#spread.stop();
  }

  /** Makes a room. @throws SvcError `not_found`, `quota_exceeded` */
  create(aid: Aid, title = ''): { groupId: string; link: string } {
    const identity = this.#mustBeHere(aid);
    const nonce = new Uint8Array(randomBytes(HASH_BYTES));
    const secret = new Uint8Array(randomBytes(JOIN_SECRET_BYTES));
    const groupId = groupIdOf(aid, nonce);
    const { rooms } = this.#deps;
    rooms.transaction(() => {
      const row = this.#addRoom(aid, groupId, aid, { title, secret, hints: [], state: 'member' });
      const proof = Buffer.concat([nonce, joinKey(secret).publicKey]);
      this.#write(this.#open(row), identity, { kind: 'create', body: new TextEncoder().encode(title), proof });
    });
    return { groupId, link: roomLinkText({ creator: aid, groupId, secret }) };
  }

  /** The rooms that an agent has a copy of, those that it left aside. */
  list(aid: Aid): RoomSummary[] {
    this.#mustBeHere(aid);
    const rows = this.#deps.rooms.list(aid).filter(({ state }) => state !== 'left');
    return rows.map((row) => summaryOf(row, this.#open(row)));
  }

  /** @throws SvcError `not_found` */
  head(aid: Aid, groupId: string): RoomHead {
    const row = this.#row(aid, groupId);
    const replica = this.#open(row);
    return {
      ...summaryOf(row, replica),
      link: roomLinkText(row),
      members: replica.members(),
      maxSeq: row.maxSeq,
      readCursor: row.readSeq,
    };
  }

  /**
   * Adds an entry.
   * @throws SvcError `not_found`, `not_member`, `access_denied`, `invalid_request`, `quota_exceeded`, `bad_delegation`
   */
  append(aid: Aid, groupId: string, draft: Draft): { seq: number; entryId: string; at: number } {
    if (isControl(draft.kind) && !BY_APPEND.includes(draft.kind))
      throw new SvcError('invalid_request', {
        message: `Entries of kind "${draft.kind}" have an operation of their own.`,
        details: { path: '/kind' },
      });
    const { objects } = this.#deps;
    if (draft.kind === 'file' && objects !== undefined && !objects.has(aid, draft.ref ?? ''))
      throw new SvcError('not_found', { message: 'The agent has no such object: put it first, then name it in ref.' });
    if (draft.kind === 'rekey') return this.#appendHere(aid, groupId, rekeyDraft());
    // Whoever is removed may have kept the link: both or neither.
    return this.#appendHere(aid, groupId, draft, ...(draft.kind === 'remove' ? [rekeyDraft()] : []));
  }

  /** Invites an agent. True where it has the invitation already. @throws SvcError as `append`; `self`, `wrong_state` */
  async invite(aid: Aid, groupId: string, target: Aid): Promise<boolean> {
    if (target === aid) throw new SvcError('self');
    const row = this.#row(aid, groupId);
    const replica = this.#open(row);
    if (replica.role(target) !== null)
      throw new SvcError('wrong_state', { message: 'This agent is a member of the group already.' });
    if (replica.members().length >= MAX_MEMBERS)
      throw new SvcError('quota_exceeded', { message: `A group takes ${MAX_MEMBERS} members.` });
    if (!replica.control.isInvited(replica.control.everything(), target))
      this.#appendHere(aid, groupId, { kind: 'invite', to: [target] });
    return this.#invitations.send(row, target);
  }

  /**
   * Joins a room by its link or an invitation. What takes longer goes on in the background, over restarts.
   * @throws SvcError `not_found`, `invalid_request`, `quota_exceeded`
   */
  async join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    this.#mustBeHere(aid);
    const { rooms } = this.#deps;
    // A member needs no invitation, and anybody may have written one.
    const inviteTo = (groupId: string) =>
      rooms.find(aid, groupId)?.state === 'member' ? null : rooms.inviteIn(aid, groupId);
    const way = wayOf(aid, request, inviteTo);
    const known = rooms.find(aid, way.groupId);
    if (known === null) this.#addRoom(aid, way.groupId, way.creator, { ...way, state: 'joining' });
    else this.#joinAnew(known, way);
    const replica = this.#open(this.#row(aid, way.groupId));
    await this.#tryToEnter(replica);
    const row = this.#row(aid, way.groupId);
    if (row.state === 'joining' || known !== null) this.#spread.soon(row.rid);
    return { groupId: way.groupId, joined: row.state === 'member', title: row.title };
  }

  /** What was said of the way before may have been wrong, as in a false invitation. */
  #joinAnew(known: RoomRow, { creator, hints, secret }: Way): void {
    const { rooms } = this.#deps;
    const { rid, maxSeq, state } = known;
    if (state === 'left' || state === 'removed') this.#checkCount(known.aid);
    const all = [...new Set([...hints, ...known.hints])].slice(0, MAX_HINTS);
    // Once an entry is here it is certain who made the room.
    const maker = maxSeq === 0 ? creator : known.creator;
    rooms.transaction(() => {
      rooms.setWay(rid, { creator: maker, hints: all }, secret);
      if (state !== 'member') rooms.setState(rid, 'joining');
    });
    if (maker !== known.creator) this.#replicas.delete(rid);
  }

  /** Withdraws an entry. @throws SvcError as `append` */
  retract(aid: Aid, groupId: string, entryId: string): { seq: number; entryId: string; at: number } {
    const row = this.#row(aid, groupId);
    const stored = this.#deps.entries.entry(row.rid, entryId);
    if (stored === null) throw new SvcError('not_found', { message: 'There is no such entry in the group.' });
    const role = this.#open(row).role(aid);
    if (entryView(stored).author !== aid && role !== 'admin' && role !== 'creator')
      throw new SvcError(role === null ? 'not_member' : 'access_denied', {
        message: 'Only its author or an admin of the group retracts an entry.',
      });
    return this.#appendHere(aid, groupId, { kind: 'retract', ref: entryId });
  }

  /** Leaves a room; the others are told as soon as one of them is there. @throws SvcError `creator_cannot_leave`, as `append` */
  leave(aid: Aid, groupId: string): void {
    const row = this.#row(aid, groupId);
    if (row.creator === aid) throw new SvcError('creator_cannot_leave');
    if (row.state === 'joining') return this.#deps.rooms.setState(row.rid, 'left');
    this.#appendHere(aid, groupId, { kind: 'leave' });
  }

  /** A page in causal order. @throws SvcError `not_found` */
  read(aid: Aid, groupId: string, { afterSeq, limit, ...filter }: ReadQuery): RoomPage {
    const { rid, maxSeq, readSeq, unread } = this.#row(aid, groupId);
    const upTo = Math.min(maxSeq, afterSeq + MAX_SCANNED);
    const count = Math.min(limit, MAX_ENTRIES_PAGE);
    const found = this.#deps.entries.page(rid, afterSeq, upTo, count, filter);
    const last = found.at(-1)?.seq ?? upTo;
    const scannedToSeq = found.length < count ? Math.max(upTo, Math.min(afterSeq, maxSeq)) : last;
    return {
      entries: found.map(entryView),
      scannedToSeq,
      hasMore: scannedToSeq < maxSeq,
      readCursor: readSeq,
      unreadCount: unread,
    };
  }

  /** Moves the read cursor on; it never goes back. @throws SvcError `not_found` */
  markRead(aid: Aid, groupId: string, seq: number): { readCursor: number; unreadCount: number } {
    this.#deps.rooms.markRead(this.#row(aid, groupId).rid, seq);
    const { readSeq, unread } = this.#row(aid, groupId);
    return { readCursor: readSeq, unreadCount: unread };
  }

  /** Compares with one member now. @throws SvcError `not_found`, as `RoomLinks.sync` */
  async sync(aid: Aid, groupId: string, peer: Aid): Promise<{ added: number; entryCount: number }> {
    const before = this.#row(aid, groupId);
    await this.#spread.syncNow(this.#open(before), peer);
    const after = this.#row(aid, groupId);
    return { added: after.maxSeq - before.maxSeq, entryCount: after.maxSeq };
  }

  /** Takes notice that an agent is gone: its copies go with it. */
  forget(aid: Aid): void {
    for (const { rid } of this.#deps.rooms.list(aid)) this.#replicas.delete(rid);
    this.#deps.rooms.removeAgent(aid);
  }

  #mustBeHere(aid: Aid): LocalIdentity {
    const identity = this.#deps.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    return identity;
  }

  #row(aid: Aid, groupId: string): RoomRow {
    this.#mustBeHere(aid);
    const row = this.#deps.rooms.find(aid, groupId);
    if (row === null) throw new SvcError('not_found', { message: 'The agent has no copy of such a group.' });
    return row;
  }

  #open(row: RoomRow): Replica {
    const known = this.#replicas.get(row.rid);
    // The number of a room that was not kept after all is given to the next one.
    if (known?.groupId === row.groupId) return known;
    const replica = new Replica(row, this.#deps);
    this.#replicas.set(row.rid, replica);
    return replica;
  }

  #replicaOf(row: RoomRow | null): Replica | null {
    return row === null || this.#deps.identity(row.aid) === null ? null : this.#open(row);
  }

  /** The replica that others may ask: not one that is still to be filled. */
  #served(aid: Aid, groupId: string): Replica | null {
    const row = this.#deps.rooms.find(aid, groupId);
    return row === null || row.state === 'joining' ? null : this.#replicaOf(row);
  }

  #addRoom(
    aid: Aid,
    groupId: string,
    creator: Aid,
    { title, secret, hints, state }: Pick<RoomRow, 'title' | 'secret' | 'hints' | 'state'>,
  ): RoomRow {
    const { rooms, clock } = this.#deps;
    this.#checkCount(aid);
    for (const rid of rooms.forgetPast(aid, MAX_PAST_ROOMS)) this.#replicas.delete(rid);
    const epoch = new Uint8Array(randomBytes(EPOCH_BYTES));
    rooms.add({ aid, groupId, creator, title, state, secret, hints, epoch, lastAt: clock.now() });
    return this.#row(aid, groupId);
  }

  #checkCount(aid: Aid): void {
    if (this.#deps.rooms.count(aid) >= MAX_ROOMS)
      throw new SvcError('quota_exceeded', { message: `An agent takes part in ${MAX_ROOMS} groups.` });
  }

  async #tryToEnter(replica: Replica): Promise<void> {
    for (const peer of this.#peers(replica).slice(0, MAX_TRIED)) {
      if (this.#deps.rooms.byRid(replica.rid)?.state !== 'joining') return;
      try {
        await this.#spread.syncNow(replica, peer);
      } catch (error) {
        this.#deps.log.debug({ aid: replica.aid, peer, error }, 'a room was not joined through this agent');
      }
    }
  }

  /** After a comparison: a joiner that has the room writes its entry. */
  async #enter(replica: Replica): Promise<void> {
    const row = this.#deps.rooms.byRid(replica.rid);
    const identity = this.#deps.identity(replica.aid);
    if (row?.state !== 'joining' || identity === null || replica.maxSeq === 0) return;
    if (replica.role(replica.aid) !== null) return this.#deps.rooms.setState(row.rid, 'member');
    const view = replica.control.everything();
    const proof = replica.control.isInvited(view, replica.aid) ? undefined : this.#proof(replica);
    try {
      this.#write(replica, identity, { kind: 'join', ...(proof === undefined ? {} : { proof }) });
    } catch (error) {
      this.#deps.log.debug({ aid: replica.aid, error }, 'the room does not let this agent in');
    }
  }

  #appendHere(
    aid: Aid,
    groupId: string,
    draft: Draft,
    ...behind: readonly Draft[]
  ): { seq: number; entryId: string; at: number } {
    const row = this.#row(aid, groupId);
    if (row.state !== 'member') throw new SvcError('not_member');
    if (row.maxSeq >= MAX_APPENDED)
      throw new SvcError('quota_exceeded', { message: `A group takes ${MAX_APPENDED} entries.` });
    return this.#write(this.#open(row), this.#mustBeHere(aid), draft, ...behind);
  }

  /** Signs and keeps an entry of our own, and those that stand behind it, all or none; tells the others. */
  #write(
    replica: Replica,
    identity: LocalIdentity,
    draft: Draft,
    ...behind: readonly Draft[]
  ): { seq: number; entryId: string; at: number } {
    const now = this.#deps.clock.now();
    const known = replica.control.newestDelegation(replica.control.everything(), replica.aid);
    // Whoever has an older key of this agent, a thief perhaps, writes nothing behind this.
    const hasNewKey = known > 0 && identity.delegation.issuedAt > known && draft.kind !== 'join';
    const unites = !isControl(draft.kind) && replica.isWide();
    if ((hasNewKey || unites) && draft.kind !== 'key') this.#write(replica, identity, { kind: 'key' });
    const entry = signEntry(replica.compose(draft, now), identity);
    const problem = replica.problem(entry);
    if (problem !== null) throw refusal(problem);
    const entries = [entry];
    for (const next of behind) entries.push(signEntry(childOf(entries.at(-1) ?? entry, next), identity));
    const { added } = this.#admit(replica, entries, null);
    if (added.length < entries.length) throw new SvcError('internal');
    return { seq: replica.maxSeq - behind.length, entryId: entry.id, at: entry.at };
  }

  #admit(replica: Replica, entries: readonly Entry[], from: Aid | null): Admission {
    // The room may have gone with its agent while signatures were checked.
    if (this.#deps.rooms.byRid(replica.rid) === null) throw new SvcError('not_found');
    const admission = replica.admit(entries, this.#deps.clock.now(), (added) => {
      settleState(replica, added, this.#deps.rooms);
      announce(replica, added, this.#deps);
    });
    if (admission.added.length > 0 && !this.#stopped) this.#spread.tell(replica, admission.added, from);
    return admission;
  }

  #proof(replica: Replica): Uint8Array | undefined {
    const secret = this.#deps.rooms.byRid(replica.rid)?.secret ?? null;
    return secret === null ? undefined : proveSecret(secret, replica.groupId, replica.aid);
  }

  /** Members, and for a joiner whom it was pointed to. */
  #peers(replica: Replica): Aid[] {
    const members = replica.members().map(({ aid }) => aid);
    const row = this.#deps.rooms.byRid(replica.rid);
    const hints = row?.state === 'joining' ? row.hints : [];
    return [...new Set([...hints, ...members])].filter((aid) => aid !== replica.aid);
  }

  #inviteTick(): void {
    if (this.#stopped) return;
    this.#invitations
      .repeat()
      .catch((error: unknown) => this.#deps.log.warn({ error }, 'invitations were not sent again'))
      .finally(() => {
        if (!this.#stopped) this.#timer = this.#deps.clock.after(INVITE_TICK_MS, () => this.#inviteTick());
      });
  }
}

/** Another join secret: the link of before lets nobody in any more. */
function rekeyDraft(): Draft {
  return { kind: 'rekey', body: new Uint8Array(randomBytes(JOIN_SECRET_BYTES)) };
}

/** An entry behind one that nobody else has seen yet. */
function childOf({ groupId, author, id, depth, at }: Entry, draft: Draft): EntryContent {
  return { ...draft, groupId, author, parents: [id], depth: depth + 1, at };
}
