/** The queries that an event of an agent invalidates. */
import { LOG_TRUNCATED } from '../../../src/foundation/domain/events.ts';
import type { EventType } from '../../../src/foundation/events.ts';
import type { Name } from './api.ts';
import { type LiveEvent, onEvent, onTurn } from './live.ts';
import { refresh, refreshOf } from './query.ts';

/** The counters of pending items. */
const PENDING = ['status', 'agentsList', 'agentGet'] as const satisfies readonly Name[];
const GROUP = [
  'groupList',
  'groupHead',
  'groupMembers',
  'groupEntries',
  'groupRead',
] as const satisfies readonly Name[];
const CHAT = [...PENDING, 'chatContacts', 'chatRead'] as const satisfies readonly Name[];

const INVALIDATED: Readonly<Partial<Record<EventType, readonly Name[]>>> = {
  'mailbox.received': [...PENDING, 'mailboxList', 'groupInvitations'],
  'mailbox.sent': ['mailboxQueued'],
  'mailbox.expired': ['mailboxQueued'],
  'group.unread': GROUP,
  'group.mentioned': GROUP,
  'group.appended': GROUP,
  'group.removed': GROUP,
  'chat.invites': CHAT,
  'chat.unread': CHAT,
  'chat.received': CHAT,
  'file.offered': ['fileOfferList'],
  'file.answered': ['fileOfferList'],
  'access.requested': [...PENDING, 'accessRequests'],
  'access.decided': [...PENDING, 'accessRequests', 'aclGet'],
  'hook.dead': ['hookList', 'hookDeliveries'],
  'path.changed': ['nodeLinks', 'tunnelList'],
};
/** Events within this time are handled together, milliseconds. */
const TOGETHER_MS = 250;

function isKind(type: string): type is EventType {
  return Object.hasOwn(INVALIDATED, type);
}

/** The operations whose responses an event invalidates. None for an unknown event type. */
export function invalidatedBy(type: string): readonly Name[] {
  return isKind(type) ? (INVALIDATED[type] ?? []) : [];
}

/** Repeats the queries that events invalidate. The returned function stops it. */
export function followInvalidations(): () => void {
  let heard: LiveEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heed = (): void => {
    timer = undefined;
    for (const aid of new Set(heard.map((event) => event.aid)))
      refreshOf(
        new Set(heard.filter((event) => event.aid === aid).flatMap(({ type }): readonly Name[] => invalidatedBy(type))),
        aid,
      );
    // The missed events are unknown, so all queries repeat.
    if (heard.some(({ type }) => type === LOG_TRUNCATED)) refresh();
    heard = [];
  };
  const end = onEvent((event) => {
    heard.push(event);
    timer ??= setTimeout(heed, TOGETHER_MS);
  });
  // A broken stream means that the daemon may be down. A restored one means that anything may have changed.
  const endTurns = onTurn((isThere) => {
    if (isThere) refresh();
    else refreshOf(new Set<Name>(['status']), '');
  });
  return () => {
    clearTimeout(timer);
    end();
    endTurns();
  };
}
