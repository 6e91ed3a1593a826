/** Updates the state of the local members and emits events for new entries. Runs in the transaction that stores them. */
import type { Timer } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { GroupRow } from '../../foundation/store/groups.ts';
import type { Entry } from './entry.ts';
import { isContent, isControl } from './kinds.ts';
import type { GroupLog } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

/** Limit of `group.mentioned` events for one batch of entries. The counter includes all mentions. */
const MAX_MENTION_EVENTS = 20;
/** With more local members than this, `UNREAD_PAUSE_MS` applies. */
const MANY_READERS = 8;
/** Interval of `group.unread` events of a group with many local members, milliseconds. */
const UNREAD_PAUSE_MS = 1000;

/**
 * Stores for all local agents whether they are members now, and the current join secret. Deletes answered invitations.
 */
export function updateState(log: GroupLog, added: readonly Entry[], deps: RemovalDependencies): void {
  const { groups, entries } = deps;
  if (!added.some(({ kind }) => isControl(kind))) return;
  for (const entry of added) if (entry.kind === 'join') groups.dropInvitesOut(log.lid, entry.author);
  for (const { rid, aid, groupId, state } of groups.sharing(log.lid)) {
    if (log.role(aid) !== null) {
      if (state !== 'member') groups.setState(rid, 'member');
      groups.dropInviteIn(aid, groupId);
    } else if (state === 'member') {
      const own = added.findLast(({ kind, author }) => kind === 'leave' && author === aid);
      const removal = added.find(({ kind, to }) => kind === 'remove' && to?.[0] === aid);
      const last = own ?? removal;
      const upTo = last === undefined ? null : (entries.fact(log.lid, last.id)?.seq ?? null);
      if (own !== undefined) groups.setState(rid, 'left', upTo);
      else markRemoved({ rid, aid, groupId }, removal?.author ?? null, upTo, deps);
    }
  }
  const secret = log.joinSecret();
  if (secret !== null) groups.setSecrets(log.lid, secret);
}

type RemovalDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'events'>;

/**
 * Stores that the agent was removed from the group, and emits the event once.
 * @param by null if unknown
 * @param upTo the last entry that the agent may read; null for the newest one
 */
export function markRemoved(
  { rid, aid, groupId }: Pick<GroupRow, 'rid' | 'aid' | 'groupId'>,
  by: Aid | null,
  upTo: number | null,
  { groups, events }: Pick<RemovalDependencies, 'groups' | 'events'>,
): void {
  if (groups.byRid(rid)?.state === 'removed') return;
  groups.transaction(() => {
    groups.setState(rid, 'removed', upTo);
    events.emit(
      aid,
      'group.removed',
      by === null ? { group_id: groupId } : { group_id: groupId, by },
      `group ${groupId}`,
    );
  });
}

type AnnounceDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'events' | 'clock' | 'log'>;

/** Emits events for new entries to the local members of a group. */
export class Announcer {
  readonly #deps: AnnounceDependencies;
  /** By log: when the members last got the number of unread entries, and the next time if there are newer ones. */
  readonly #notified = new Map<number, { at: number; timer: Timer | null }>();
  #isStopped = false;

  constructor(dependencies: AnnounceDependencies) {
    this.#deps = dependencies;
  }

  /** Emits pending events. */
  stop(): void {
    this.#isStopped = true;
    for (const [lid, { timer }] of this.#notified) {
      if (timer === null) continue;
      timer.cancel();
      this.#tellAll(lid);
    }
    this.#notified.clear();
  }

  /** Runs in the transaction that stores the entries. */
  emit({ lid, groupId: group_id }: GroupLog, added: readonly Entry[]): void {
    const { entries, events, groups } = this.#deps;
    const shared = groups.sharing(lid);
    for (const { author, id } of added)
      if (shared.some(({ aid, state }) => aid === author && state !== 'joining'))
        events.emit(author, 'group.appended', { group_id, entry_id: id });
    const contents = added.filter(({ kind }) => isContent(kind));
    const readers = shared.filter(
      ({ aid, state }) => (state === 'member' || state === 'joining') && contents.some(({ author }) => author !== aid),
    );
    if (readers.length === 0) return;
    this.#tellUnread(lid, readers);
    const mentions = new Map<Aid, number>();
    for (const { id, author, to = [] } of contents) {
      const mentioned = to.filter((aid) => aid !== author && readers.some((row) => row.aid === aid));
      if (mentioned.length === 0 || entries.entry(lid, id) === null) continue;
      for (const aid of mentioned) {
        const count = mentions.get(aid) ?? 0;
        mentions.set(aid, count + 1);
        if (count < MAX_MENTION_EVENTS)
          events.emit(aid, 'group.mentioned', { group_id, entry_id: id, from: author }, `group ${group_id}`);
      }
    }
  }

  /** With many local members, each gets the number of unread entries once in a while, not for each entry. */
  #tellUnread(lid: number, readers: readonly GroupRow[]): void {
    const { clock } = this.#deps;
    const notified = this.#notified.get(lid);
    if (readers.length <= MANY_READERS) return this.#tell(readers);
    if (notified?.timer !== null && notified !== undefined) return;
    const now = clock.now();
    if (notified === undefined || now - notified.at >= UNREAD_PAUSE_MS || now < notified.at) {
      this.#notified.set(lid, { at: now, timer: null });
      return this.#tell(readers);
    }
    notified.timer = clock.after(UNREAD_PAUSE_MS - (now - notified.at), () => {
      this.#notified.delete(lid);
      if (!this.#isStopped) this.#tellAll(lid);
      this.#notified.set(lid, { at: clock.now(), timer: null });
    });
  }

  #tellAll(lid: number): void {
    const { groups, log } = this.#deps;
    try {
      groups.transaction(() =>
        this.#tell(groups.sharing(lid).filter(({ state, unread }) => state === 'member' && unread > 0)),
      );
    } catch (error) {
      log.warn({ error }, 'the numbers of unread group entries could not be reported');
    }
  }

  #tell(readers: readonly GroupRow[]): void {
    for (const { aid, groupId: group_id, unread } of readers)
      this.#deps.events.emit(aid, 'group.unread', { group_id, unread_count: unread }, `group ${group_id}`);
  }
}
