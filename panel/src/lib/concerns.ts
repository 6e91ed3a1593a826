/** Which of the answers of this node an event of one of its agents makes old. */
import { LOG_TRUNCATED } from '../../../src/foundation/domain/events.ts';
import type { EventType } from '../../../src/foundation/events.ts';
import type { Name } from './api.ts';
import { type LiveEvent, onEvent, onTurn } from './live.ts';
import { refresh, refreshOf } from './query.ts';

/** The counters of what waits. */
const PENDING = ['status', 'agentsList', 'agentGet'] as const satisfies readonly Name[];
const ROOM = ['groupList', 'groupHead', 'groupMembers', 'groupEntries', 'groupRead'] as const satisfies readonly Name[];
const CHAT = [...PENDING, 'chatContacts', 'chatRead'] as const satisfies readonly Name[];

const CONCERNS: Readonly<Record<EventType, readonly Name[]>> = {
  'mailbox.received': [...PENDING, 'mailboxList', 'groupInvitations'],
  'mailbox.sent': ['mailboxQueued'],
  'mailbox.expired': ['mailboxQueued'],
  'group.unread': ROOM,
  'group.mentioned': ROOM,
  'group.appended': ROOM,
  'group.removed': ROOM,
  'chat.invites': CHAT,
  'chat.unread': CHAT,
  'chat.received': CHAT,
  'file.offered': ['fileOfferList'],
  'file.answered': ['fileOfferList'],
  'path.changed': ['nodeLinks', 'tunnelList'],
};
/** Events that come together are heeded together, milliseconds. */
const TOGETHER_MS = 250;

function isKind(type: string): type is EventType {
  return Object.hasOwn(CONCERNS, type);
}

/** The operations whose answers an event makes old; none for a kind that is not known. */
export function concernsOf(type: string): readonly Name[] {
  return isKind(type) ? CONCERNS[type] : [];
}

/** Asks anew what events make old; what it gives ends that. */
export function heedConcerns(): () => void {
  let heard: LiveEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heed = (): void => {
    timer = undefined;
    for (const aid of new Set(heard.map((event) => event.aid)))
      refreshOf(
        new Set(heard.filter((event) => event.aid === aid).flatMap(({ type }): readonly Name[] => concernsOf(type))),
        aid,
      );
    // What was missed is not known.
    if (heard.some(({ type }) => type === LOG_TRUNCATED)) refresh();
    heard = [];
  };
  const end = onEvent((event) => {
    heard.push(event);
    timer ??= setTimeout(heed, TOGETHER_MS);
  });
  // A stream that broke says at once that the daemon may be gone, and one that is back, that all may be another.
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
