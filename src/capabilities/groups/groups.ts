/** Groups: signed logs that their members share. See docs/groups.md. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { AntiEntropy } from './anti-entropy.ts';
import { GroupLinks } from './group-links.ts';
import { Invitations } from './invitations.ts';
import { Joiner, type JoinRequest } from './joiner.ts';
import { Replicas } from './replicas.ts';
import type {
  EntryDraft,
  GroupHead,
  GroupInvitation,
  GroupPage,
  GroupsDependencies,
  ListedGroup,
  ReadQuery,
} from './types.ts';
import { headOf, pageBefore, pageOf, summaryOf } from './views.ts';
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
    const log = dependencies.log.child('groups');
    const replicas = new Replicas(dependencies);
    const common = { ...dependencies, log, replicas };
    const writer = new GroupWriter(common);
    const links = new GroupLinks({ ...common, writer });
    const antiEntropy = new AntiEntropy({ ...common, links });
    const joiner = new Joiner({ ...common, writer, antiEntropy: antiEntropy });
    writer.added.add((replica, entries, from) => antiEntropy.broadcast(replica, entries, from));
    links.peerSeen.add((peer) => antiEntropy.peerSeen(peer));
    antiEntropy.synced.add((replica) => joiner.synced(replica));
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#writer = writer;
    this.#invitations = new Invitations({ ...common, writer });
    this.#links = links;
    this.#antiEntropy = antiEntropy;
    this.#joiner = joiner;
  }

  async start(): Promise<void> {
    this.#antiEntropy.start();
    this.#invitations.start();
  }

  async stop(): Promise<void> {
    this.#invitations.stop();
    this.#links.stop();
    this.#antiEntropy.stop();
  }

  /** Creates a group. @throws SvcError `not_found`, `quota_exceeded` */
  create(aid: Aid, title = ''): { groupId: string; link: string } {
    return this.#writer.create(aid, title);
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
   * @throws SvcError `not_found`, `not_member`, `access_denied`, `invalid_request`, `quota_exceeded`, `bad_delegation`
   */
  append(aid: Aid, groupId: string, draft: EntryDraft): Written {
    return this.#writer.append(aid, groupId, draft);
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

  /** Discards the replicas of a deleted agent. */
  forget(aid: Aid): void {
    this.#replicas.forget(aid);
  }
}
