/** Rooms: signed logs that their members share. See docs/rooms.md. */
import type { Clock } from '../../foundation/clock.ts';
import type { EventSink } from '../../foundation/events.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { DelegationVerifier } from '../../foundation/identity/delegation-verifier.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { RoomEntryStore } from '../../foundation/store/room-entries.ts';
import type { RoomStore } from '../../foundation/store/rooms.ts';
import type { Links } from '../../network/links/types.ts';
import { AntiEntropy } from './anti-entropy.ts';
import { Invitations } from './invitations.ts';
import { Joiner } from './joiner.ts';
import type { JoinRequest } from './joining.ts';
import { type ReadQuery, RoomReader } from './reader.ts';
import { Replicas } from './replicas.ts';
import { RoomLinks } from './room-links.ts';
import type { EntryDraft, LocalIdentity, RoomHead, RoomNotes, RoomObjects, RoomPage, RoomSummary } from './types.ts';
import { RoomWriter, type Written } from './writer.ts';

export interface RoomsDependencies {
  readonly rooms: RoomStore;
  readonly entries: RoomEntryStore;
  readonly links: Links;
  readonly notes: RoomNotes;
  readonly objects?: RoomObjects;
  readonly delegations: Pick<DelegationVerifier, 'verifyAsync'>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  /** The identity of a registered agent here; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
  /** A number from 0 to below 1. */
  random(): number;
}

export class Rooms implements Component {
  readonly #replicas: Replicas;
  readonly #reader: RoomReader;
  readonly #writer: RoomWriter;
  readonly #invitations: Invitations;
  readonly #links: RoomLinks;
  readonly #spread: AntiEntropy;
  readonly #joiner: Joiner;

  constructor(dependencies: RoomsDependencies) {
    const log = dependencies.log.child('rooms');
    const replicas = new Replicas(dependencies);
    const common = { ...dependencies, log, replicas };
    const writer = new RoomWriter(common);
    const links = new RoomLinks({ ...common, writer });
    const spread = new AntiEntropy({ ...common, links });
    const joiner = new Joiner({ ...common, writer, spread });
    writer.added.add((replica, entries, from) => spread.tell(replica, entries, from));
    links.met.add((peer) => spread.met(peer));
    spread.synced.add((replica) => joiner.synced(replica));
    this.#replicas = replicas;
    this.#reader = new RoomReader(common);
    this.#writer = writer;
    this.#invitations = new Invitations({ ...common, writer });
    this.#links = links;
    this.#spread = spread;
    this.#joiner = joiner;
  }

  async start(): Promise<void> {
    this.#spread.start();
    this.#invitations.start();
  }

  async stop(): Promise<void> {
    this.#invitations.stop();
    this.#links.stop();
    this.#spread.stop();
  }

  /** Makes a room. @throws SvcError `not_found`, `quota_exceeded` */
  create(aid: Aid, title = ''): { groupId: string; link: string } {
    return this.#writer.create(aid, title);
  }

  /** The rooms that an agent has a copy of, those that it left aside. @throws SvcError `not_found` */
  list(aid: Aid): RoomSummary[] {
    return this.#reader.list(aid);
  }

  /** @throws SvcError `not_found` */
  head(aid: Aid, groupId: string): RoomHead {
    return this.#reader.head(aid, groupId);
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

  /** Leaves a room; the others are told as soon as one of them is there. @throws SvcError `creator_cannot_leave`, as `append` */
  leave(aid: Aid, groupId: string): void {
    this.#writer.leave(aid, groupId);
  }

  /** Invites an agent. True where it has the invitation already. @throws SvcError as `append`; `self`, `wrong_state` */
  async invite(aid: Aid, groupId: string, target: Aid): Promise<boolean> {
    return await this.#invitations.invite(aid, groupId, target);
  }

  /**
   * Joins a room by its link or an invitation. What takes longer goes on in the background, over restarts.
   * @throws SvcError `not_found`, `invalid_request`, `quota_exceeded`
   */
  join(aid: Aid, request: JoinRequest): Promise<{ groupId: string; joined: boolean; title: string }> {
    return this.#joiner.join(aid, request);
  }

  /** A page in causal order. @throws SvcError `not_found` */
  read(aid: Aid, groupId: string, query: ReadQuery): RoomPage {
    return this.#reader.read(aid, groupId, query);
  }

  /** Moves the read cursor on; it never goes back. @throws SvcError `not_found` */
  markRead(aid: Aid, groupId: string, seq: number): { readCursor: number; unreadCount: number } {
    return this.#reader.markRead(aid, groupId, seq);
  }

  /** Compares with one member now. @throws SvcError `not_found`, as `RoomLinks.sync` */
  async sync(aid: Aid, groupId: string, peer: Aid): Promise<{ added: number; entryCount: number }> {
    const before = this.#replicas.row(aid, groupId);
    await this.#spread.syncNow(this.#replicas.open(before), peer);
    const after = this.#replicas.row(aid, groupId);
    return { added: after.maxSeq - before.maxSeq, entryCount: after.maxSeq };
  }

  /** Takes notice that an agent is gone: its copies go with it. */
  forget(aid: Aid): void {
    this.#replicas.forget(aid);
  }
}
