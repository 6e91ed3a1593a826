/** Groups: signed logs that their members share. See docs/groups.md. */

import { assertClockNotAhead } from '../../foundation/clock.ts';
import { MAX_HINTS, MAX_TITLE_CHARS } from '../../foundation/domain/groups.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { GroupRow, InviteIn } from '../../foundation/store/groups.ts';
import { AntiEntropy } from './anti-entropy.ts';
import type { Entry } from './entry.ts';
import { GroupLinks } from './group-links.ts';
import { Invitations } from './invitations.ts';
import type { GroupLog, Replica } from './replica.ts';
import { Replicas } from './replicas.ts';
import type {
  EntryDraft,
  GroupEntry,
  GroupHead,
  GroupInvitation,
  GroupPage,
  GroupsDependencies,
  ListedGroup,
  ReadQuery,
} from './types.ts';
import { entryView, type GroupLink, headOf, pageBefore, pageOf, parseGroupLink, summaryOf } from './views.ts';
import { GroupWriter, type Written } from './writer.ts';

export class Groups implements Component {
  readonly #deps: GroupsDependencies;
  readonly #replicas: Replicas;
  readonly #writer: GroupWriter;
  readonly #invitations: Invitations;
  readonly #links: GroupLinks;
  readonly #antiEntropy: AntiEntropy;
  readonly #joiner: Joiner;

  constructor(dependencies: GroupsDependencies) {
    const parts = { ...dependencies, log: dependencies.log.child('groups') };
    const replicas = new Replicas(parts);
    const writer = new GroupWriter(parts, replicas);
    const links = new GroupLinks(parts, replicas, writer);
    const antiEntropy = new AntiEntropy(parts, replicas, links);
    const joiner = new Joiner(parts, replicas, writer, antiEntropy);
    writer.added.add((replica, entries, from) => antiEntropy.broadcast(replica, entries, from));
    links.peerSeen.add((peer) => antiEntropy.peerSeen(peer));
    links.fetched.add((replica) => joiner.fetched(replica));
    this.#deps = parts;
    this.#replicas = replicas;
    this.#writer = writer;
    this.#invitations = new Invitations(parts, replicas, writer);
    this.#links = links;
    this.#antiEntropy = antiEntropy;
    this.#joiner = joiner;
  }

  async start(): Promise<void> {
    this.#antiEntropy.start();
    this.#invitations.start();
  }

  async stop(): Promise<void> {
    this.#links.stop();
    this.#antiEntropy.stop();
    await this.#invitations.stop();
    this.#writer.stop();
  }

  /**
   * Creates a group.
   * @param alongside runs in the transaction that stores it
   * @throws SvcError `not_found`, `quota_exceeded`
   */
  create(aid: Aid, title = '', alongside?: (groupId: string) => void): { groupId: string; link: string } {
    return this.#writer.create(aid, title, alongside);
  }

  /** All groups that an agent has a copy of and has not left. @throws SvcError `not_found` */
  list(aid: Aid): ListedGroup[] {
    this.#replicas.requireLocal(aid);
    const rows = this.#deps.groups.list(aid).filter(({ state }) => state !== 'left');
    const { entries } = this.#deps;
    return rows.map((row) => ({
      ...summaryOf(row, this.#replicas.open(row)),
      place: row.rid,
      lastSeq: row.maxSeq,
      last: pageBefore(row, entries, row.maxSeq + 1, 1).entries[0] ?? null,
    }));
  }

  /** The invitations to groups that an agent has not joined, oldest first. @throws SvcError `not_found` */
  invitations(aid: Aid): GroupInvitation[] {
    this.#replicas.requireLocal(aid);
    const { groups } = this.#deps;
    const joined = new Set(groups.list(aid).flatMap(({ groupId, state }) => (state === 'member' ? [groupId] : [])));
    return groups.invitesIn(aid).filter(({ groupId }) => !joined.has(groupId));
  }

  /** Declines an invitation. The sender may send another one. @throws SvcError `not_found` */
  refuseInvitation(aid: Aid, groupId: string): void {
    if (!this.invitations(aid).some((invitation) => invitation.groupId === groupId))
      throw new SvcError('not_found', {
        thing: 'group',
        message: 'No pending invitation to this group.',
        details: { group_id: groupId },
      });
    this.#deps.groups.dropInviteIn(aid, groupId);
  }

  /** @throws SvcError `not_found` */
  head(aid: Aid, groupId: string): GroupHead {
    const row = this.#replicas.row(aid, groupId);
    return headOf(row, this.#replicas.open(row));
  }

  /**
   * Adds an entry.
   * @param alongside runs in the transaction that stores it
   * @throws SvcError `not_found`, `not_member`, `access_denied`, `invalid_request`, `quota_exceeded`, `bad_delegation`
   */
  append(aid: Aid, groupId: string, draft: EntryDraft, alongside?: (entryId: string) => void): Written {
    return this.#writer.append(aid, groupId, draft, alongside);
  }

  /** Withdraws an entry. @throws SvcError as `append` */
  retract(aid: Aid, groupId: string, entryId: string): Written {
    return this.#writer.retract(aid, groupId, entryId);
  }

  /**
   * Leaves a group. Other members learn it as soon as one of them is reachable.
   * @throws SvcError `creator_cannot_leave`, and as `append`
   */
  leave(aid: Aid, groupId: string): void {
    this.#writer.leave(aid, groupId);
  }

  /**
   * Invites an agent. Returns true if the agent has already received the invitation.
   * @throws SvcError `self`, `wrong_state`, and as `append`
   */
  async invite(aid: Aid, groupId: string, target: Aid): Promise<boolean> {
    return await this.#invitations.invite(aid, groupId, target);
  }

  /**
   * Joins a group by its link or an invitation. Joining continues in the background, also after a restart, if no member
   * can be reached now.
   * @throws SvcError `not_found`, `invalid_request`, `quota_exceeded`
   */
  join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    return this.#joiner.join(aid, request);
  }

  /** Returns a page in causal order. @throws SvcError `not_found` */
  read(aid: Aid, groupId: string, query: ReadQuery): GroupPage {
    return pageOf(this.#replicas.row(aid, groupId), this.#deps.entries, query);
  }

  /** Returns the newest entries before a position. @throws SvcError `not_found` */
  readBefore(aid: Aid, groupId: string, beforeSeq: number, limit: number): GroupPage {
    return pageBefore(this.#replicas.row(aid, groupId), this.#deps.entries, beforeSeq, limit);
  }

  /** Returns an entry; null if it is not there or damaged. @throws SvcError `not_found` */
  entry(aid: Aid, groupId: string, entryId: string): GroupEntry | null {
    const row = this.#replicas.row(aid, groupId);
    const stored = this.#deps.entries.entry(row.lid, entryId);
    return stored === null || stored.seq > row.maxSeq ? null : entryView(stored);
  }

  /** Moves the read cursor forward, never back. @throws SvcError `not_found` */
  markRead(aid: Aid, groupId: string, seq: number): { readCursor: number; unreadCount: number } {
    this.#deps.groups.markRead(this.#replicas.row(aid, groupId).rid, seq);
    const { readSeq, unread } = this.#replicas.row(aid, groupId);
    return { readCursor: readSeq, unreadCount: unread };
  }

  /** Syncs with one member now. @throws SvcError `not_found`, and as `GroupLinks.sync` */
  async sync(aid: Aid, groupId: string, peer: Aid): Promise<{ added: number; entryCount: number }> {
    const before = this.#replicas.row(aid, groupId);
    await this.#antiEntropy.syncNow(this.#replicas.open(before), peer);
    const after = this.#replicas.row(aid, groupId);
    return { added: after.maxSeq - before.maxSeq, entryCount: after.maxSeq };
  }

  /** Runs in the transaction of an import that adds entries to the log of other local members. */
  admitted(log: GroupLog, added: readonly Entry[]): void {
    this.#writer.stored(log, added);
  }

  /** Loads the groups of an imported agent, and syncs them: other members may have newer entries, or lack some. */
  imported(aid: Aid): void {
    const { groups } = this.#deps;
    for (const row of groups.list(aid)) {
      this.#replicas.open(row).log.catchUp();
      // One local member syncs for all of them.
      for (const { rid } of groups.sharing(row.lid)) this.#antiEntropy.scheduleSync(rid);
    }
    this.#invitations.soon();
  }

  /** Discards the replicas of a deleted agent. */
  forget(aid: Aid): void {
    this.#replicas.forget(aid);
  }
}

// Joins an agent to a group: fetches the log from a member, then writes a `join` entry.

/** Peers that are tried before `join` returns and joining continues in the background. */
const MAX_TRIED = 4;

/** Identifies a group to join: by its link, or by its ID and creator. */
export interface JoinRequest {
  readonly link?: string | undefined;
  readonly groupId?: string | undefined;
  readonly creator?: Aid | undefined;
  readonly hints: readonly Aid[];
  readonly title?: string | undefined;
}

/** Everything that is known about a group before joining. */
interface JoinInfo extends GroupLink {
  readonly title: string;
  readonly hints: readonly Aid[];
}

type JoinerParts = Pick<GroupsDependencies, 'groups' | 'log' | 'clockAheadMs'>;

export class Joiner {
  readonly #deps: JoinerParts;
  readonly #replicas: Replicas;
  readonly #writer: GroupWriter;
  readonly #antiEntropy: Pick<AntiEntropy, 'scheduleSync' | 'syncNow'>;
  readonly #joined: Listeners<[rid: number]> = new Listeners();

  constructor(
    dependencies: JoinerParts,
    replicas: Replicas,
    writer: GroupWriter,
    antiEntropy: Pick<AntiEntropy, 'scheduleSync' | 'syncNow'>,
  ) {
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#writer = writer;
    this.#antiEntropy = antiEntropy;
  }

  /**
   * See `Groups.join`.
   * @throws SvcError `clock_wrong` if the clock of this machine prevents joining; as `Groups.join`
   */
  async join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    const { groups } = this.#deps;
    this.#replicas.requireLocal(aid);
    const link = request.link === undefined ? null : parseGroupLink(request.link);
    const groupId = link?.groupId ?? request.groupId;
    if (groupId === undefined || (request.groupId !== undefined && request.groupId !== groupId))
      throw new SvcError('invalid_request', { message: 'Give a link, or group_id with creator_aid.' });
    const known = groups.find(aid, groupId);
    // A member needs no invitation, and the stored one may be from anyone.
    const invite = known?.state === 'member' ? null : groups.inviteIn(aid, groupId);
    const way = joinInfoOf(aid, groupId, request, link, invite);
    if (known === null) this.#replicas.add({ ...way, aid, state: 'joining' });
    else this.#rejoin(known, way);
    const replica = this.#replicas.open(this.#replicas.row(aid, groupId));
    if (this.#replicas.attachLocal(replica)) this.fetched(replica);
    const clockWrong = await this.#tryPeers(replica);
    const row = this.#replicas.row(aid, groupId);
    if (row.state === 'joining' || known !== null) this.#antiEntropy.scheduleSync(row.rid);
    if (row.state === 'joining') {
      // Joining completes when the clock is right. Until then, no attempt can succeed.
      assertClockNotAhead(this.#deps.clockAheadMs?.() ?? 0);
      if (clockWrong !== null) throw clockWrong;
    }
    return { groupId, joined: row.state === 'member', title: row.title };
  }

  /** Must be called when a sync has fetched. If a joining agent has the log now, writes its `join` entry. */
  fetched(replica: Replica): void {
    const { groups, log } = this.#deps;
    const row = groups.byRid(replica.rid);
    const identity = this.#replicas.identity(replica.aid);
    if (row?.state !== 'joining' || identity === null || replica.maxSeq === 0) return;
    if (replica.role(replica.aid) !== null) {
      groups.setState(row.rid, 'member');
      return this.#joined.notify(row.rid);
    }
    const view = replica.control.everything();
    const proof = replica.control.isInvited(view, replica.aid) ? undefined : this.#replicas.proof(replica);
    try {
      this.#writer.write(replica, identity, { kind: 'join', proof });
      this.#joined.notify(row.rid);
    } catch (error) {
      log.debug({ aid: replica.aid, error }, 'the group did not admit this agent');
    }
  }

  /** The information from the last attempt may be wrong, for example from a false invitation. */
  #rejoin(known: GroupRow, { creator, hints, secret }: JoinInfo): void {
    const { groups } = this.#deps;
    const { rid, maxSeq, state } = known;
    if (state === 'left' || state === 'removed') this.#replicas.checkCount(known.aid);
    const all = [...new Set([...hints, ...known.hints])].slice(0, MAX_HINTS);
    // As soon as the replica has an entry, the creator is certain.
    const maker = maxSeq === 0 ? creator : known.creator;
    groups.transaction(() => {
      groups.setJoinInfo(rid, { creator: maker, hints: all }, secret);
      if (state !== 'member') groups.setState(rid, 'joining');
    });
    if (maker !== known.creator) this.#replicas.reopen(rid);
  }

  /** @returns the `clock_wrong` error of an attempt, or null */
  async #tryPeers(replica: Replica): Promise<SvcError | null> {
    const { groups, log } = this.#deps;
    let clockWrong: SvcError | null = null;
    for (const peer of this.#replicas.peers(replica).slice(0, MAX_TRIED)) {
      if (groups.byRid(replica.rid)?.state !== 'joining') break;
      const joined = Promise.withResolvers<void>();
      const stop = this.#joined.add((rid) => {
        if (rid === replica.rid) joined.resolve();
      });
      try {
        // The rest of the sync tells the peer.
        await Promise.race([this.#antiEntropy.syncNow(replica, peer), joined.promise]);
      } catch (error) {
        log.debug({ aid: replica.aid, peer, error }, 'joining a group through this agent failed');
        if (error instanceof SvcError && error.code === 'clock_wrong') clockWrong = error;
      } finally {
        stop();
      }
    }
    return clockWrong;
  }
}

/**
 * Combines a join request with its link and a stored invitation.
 * @throws SvcError `invalid_request` if the creator is unknown
 */
function joinInfoOf(
  aid: Aid,
  groupId: string,
  request: JoinRequest,
  link: GroupLink | null,
  invite: InviteIn | null,
): JoinInfo {
  const creator = link?.creator ?? request.creator ?? invite?.creator;
  if (creator === undefined)
    throw new SvcError('invalid_request', {
      message: 'Without a link or an invitation, creator_aid is required.',
      details: { path: '/creator_aid' },
    });
  const hints = [...request.hints, ...(invite === null ? [] : [invite.inviter]), creator];
  return {
    groupId,
    creator,
    title: (request.title ?? invite?.title ?? '').slice(0, MAX_TITLE_CHARS),
    secret: link?.secret ?? invite?.secret ?? null,
    hints: [...new Set(hints)].filter((hint) => hint !== aid).slice(0, MAX_HINTS),
  };
}
