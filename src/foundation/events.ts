/** The events of agents. Events are hints: clients read the content elsewhere. See docs/events.md. */
import type { AskKind } from './domain/access.ts';
import type { FileOfferState } from './domain/file-offers.ts';
import type { PathKind } from './domain/tunnels.ts';
import type { Aid } from './identity/aid.ts';

/** The payload of each event type. */
export interface EventPayloads {
  /** Notes arrived. */
  'mailbox.received': { readonly count: number; readonly message_ids: readonly string[] };
  /** A queued note was delivered to the recipient's node or stored by another node. */
  'mailbox.sent': {
    readonly message_id: string;
    readonly recipient: Aid;
    readonly replicas: number;
    readonly delivered: boolean;
  };
  /** A queued note expired before another node stored it. */
  'mailbox.expired': { readonly message_id: string; readonly recipient: Aid };
  'group.unread': { readonly group_id: string; readonly unread_count: number };
  /** An entry of another member mentions the agent. */
  'group.mentioned': { readonly group_id: string; readonly entry_id: string; readonly from: Aid };
  /** The agent added an entry to a group. */
  'group.appended': { readonly group_id: string; readonly entry_id: string };
  /** The agent was removed from a group. It can neither write nor read new entries. `by` is absent if unknown. */
  'group.removed': { readonly group_id: string; readonly by?: Aid };
  /** Another agent invites the agent to a group that did not before. */
  'group.invited': { readonly group_id: string; readonly from: Aid };
  /** Pending chat requests and their senders. `from`: the sender of a new one. */
  'chat.invites': { readonly count: number; readonly peers: readonly Aid[]; readonly from?: Aid };
  'chat.unread': { readonly peer: Aid; readonly unread_count: number };
  'chat.received': { readonly peer: Aid; readonly seq: number };
  /** Another agent offers a file. */
  'file.offered': { readonly offer_id: string; readonly from: Aid };
  /** The other side accepted, declined or withdrew an offer. */
  'file.answered': {
    readonly offer_id: string;
    readonly peer: Aid;
    readonly state: Exclude<FileOfferState, 'open' | 'expired'>;
  };
  /** A hook failed to handle an item, and will not try again. */
  'hook.dead': { readonly hook_id: string; readonly delivery_id: number };
  /** A caller asks for access. Not every request has an event: see docs/access-control.md. */
  'access.requested': { readonly request: string; readonly caller: Aid; readonly kind: AskKind };
  /** The owner decided about a request. */
  'access.decided': {
    readonly request: string;
    readonly caller: Aid;
    readonly kind: AskKind;
    readonly allowed: boolean;
  };
  /** The connection to the node of agents that this one communicates with changed its path. */
  'path.changed': {
    readonly node: Aid;
    readonly agents: readonly Aid[];
    readonly path: PathKind;
    readonly before: PathKind;
    /** The remote address of the path, `host:port`. For a relayed path, the address of the relay. */
    readonly address: string;
    readonly is_relayed: boolean;
  };
}

export type EventType = keyof EventPayloads;

/** All event types. */
export const EVENT_TYPES = [
  'mailbox.received',
  'mailbox.sent',
  'mailbox.expired',
  'group.unread',
  'group.mentioned',
  'group.appended',
  'group.removed',
  'group.invited',
  'chat.invites',
  'chat.unread',
  'chat.received',
  'file.offered',
  'file.answered',
  'hook.dead',
  'access.requested',
  'access.decided',
  'path.changed',
] as const satisfies readonly EventType[];

/** The cause of events of all agents that the owner does not know. */
export const STRANGERS = 'strangers';

/** The agents or the group that caused an event. */
export type EventCause = typeof STRANGERS | Aid | `group ${string}`;

/** The cause of an event that a peer caused. */
export function causeOf(peer: Aid, isKnown: boolean): EventCause {
  return isKnown ? peer : STRANGERS;
}

/** Receives the events of capabilities. */
export interface EventSink {
  /**
   * Logs an event. In a transaction of the store, the event is committed or rolled back with it. Subscribers are
   * notified after the commit.
   * @param cause who caused the event. The events of one cause can fill only part of the log. Omitted for events of the
   *   agent itself.
   * @returns the position in the log of this daemon
   * @throws SvcError `not_writable`, `store_corrupt`
   */
  emit<T extends EventType>(aid: Aid, type: T, data: EventPayloads[T], cause?: EventCause): number;
}
