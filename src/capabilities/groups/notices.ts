/** What new entries mean to the agent whose replica they came to; runs in the transaction that keeps them. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Entry } from './entry.ts';
import { isContent, isControl } from './kinds.ts';
import type { Replica } from './replica.ts';
import type { GroupsDependencies } from './types.ts';

/** Mentions that are told one by one; the counter has them all. */
const MAX_MENTIONS_TOLD = 20;

/** Writes down whether the agent is a member now, what lets others in, and which invitations were answered. */
export function settleState(replica: Replica, added: readonly Entry[], deps: RemovalDependencies): void {
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

/** Writes down that the agent was removed from the group, and tells it, once. @param by null if that is not known */
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

/** Leaves word of what came and of what the agent wrote itself. */
export function announce(replica: Replica, added: readonly Entry[], deps: AnnounceDependencies): void {
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
  for (const { id, author } of mentions.slice(0, MAX_MENTIONS_TOLD))
    events.emit(aid, 'group.mentioned', { group_id, entry_id: id, from: author }, `room ${group_id}`);
}
