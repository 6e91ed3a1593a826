/** Updates the agent's state and emits events for new entries. Runs in the transaction that stores them. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Entry } from './entry.ts';
import { isContent, isControl } from './kinds.ts';
import type { Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

/** Limit of `group.mentioned` events for one batch of entries. The counter includes all mentions. */
const MAX_MENTION_EVENTS = 20;

/** Stores whether the agent is a member now, and the current join secret. Deletes answered invitations. */
export function updateState(replica: Replica, added: readonly Entry[], deps: RemovalDependencies): void {
  const { groups } = deps;
  if (!added.some(({ kind }) => isControl(kind))) return;
  for (const entry of added) if (entry.kind === 'join') groups.dropInviteOut(replica.rid, entry.author);
  const { rid, aid, groupId } = replica;
  const secret = replica.joinSecret();
  if (secret !== null) groups.setSecret(rid, secret);
  const state = groups.byRid(rid)?.state;
  if (replica.role(aid) !== null) {
    groups.setState(rid, 'member');
    groups.dropInviteIn(aid, groupId);
  } else if (state === 'member') {
    const isOwn = added.some(({ kind, author }) => kind === 'leave' && author === aid);
    const removal = added.find(({ kind, to }) => kind === 'remove' && to?.[0] === aid);
    if (isOwn) groups.setState(rid, 'left');
    else markRemoved(replica, removal?.author ?? null, deps);
  }
}

type RemovalDependencies = Pick<GroupsDependencies, 'groups' | 'events'>;

/** Stores that the agent was removed from the group, and emits the event once. @param by null if unknown */
export function markRemoved(
  { rid, aid, groupId }: Replica,
  by: Aid | null,
  { groups, events }: RemovalDependencies,
): void {
  if (groups.byRid(rid)?.state === 'removed') return;
  groups.transaction(() => {
    groups.setState(rid, 'removed');
    events.emit(
      aid,
      'group.removed',
      by === null ? { group_id: groupId } : { group_id: groupId, by },
      `room ${groupId}`,
    );
  });
}

type AnnounceDependencies = Pick<GroupsDependencies, 'groups' | 'entries' | 'events'>;

/** Emits events for new entries of other members and of the agent itself. */
export function emitEvents(replica: Replica, added: readonly Entry[], deps: AnnounceDependencies): void {
  const { rid, aid, groupId: group_id } = replica;
  const { groups, entries, events } = deps;
  const row = groups.byRid(rid);
  if (row === null) return;
  for (const { author, id } of added)
    if (author === aid && row.state !== 'joining') events.emit(aid, 'group.appended', { group_id, entry_id: id });
  const foreign = added.filter(({ author, kind }) => author !== aid && isContent(kind));
  if (foreign.length === 0) return;
  events.emit(aid, 'group.unread', { group_id, unread_count: row.unread }, `room ${group_id}`);
  const mentions = foreign.filter(({ to, id }) => to?.includes(aid) === true && entries.entry(rid, id) !== null);
  for (const { id, author } of mentions.slice(0, MAX_MENTION_EVENTS))
    events.emit(aid, 'group.mentioned', { group_id, entry_id: id, from: author }, `room ${group_id}`);
}
