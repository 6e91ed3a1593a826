/** The events that agents are told of: hints only, the content is read where it lies. See docs/events.md. */
import type { FileOfferState } from './domain/file-offers.ts';
import type { PathKind } from './domain/tunnels.ts';
import type { Aid } from './identity/aid.ts';

/** What each kind of event carries. */
export interface EventPayloads {
  /** Notes arrived. */
  'mailbox.received': { readonly count: number; readonly message_ids: readonly string[] };
  /** A note that was queued here has left: another node keeps it, or the recipient's node has it. */
  'mailbox.sent': {
    readonly message_id: string;
    readonly recipient: Aid;
    readonly replicas: number;
    readonly delivered: boolean;
  };
  /** A note that was queued here expired: no other node has ever had it. */
  'mailbox.expired': { readonly message_id: string; readonly recipient: Aid };
  'group.unread': { readonly group_id: string; readonly unread_count: number };
  /** Somebody else's entry names the agent. */
  'group.mentioned': { readonly group_id: string; readonly entry_id: string; readonly from: Aid };
  /** The agent's own write to a room. */
  'group.appended': { readonly group_id: string; readonly entry_id: string };
  /** The agent was removed from a room: it can neither read what is new nor write. `by` is left out if that is not known. */
  'group.removed': { readonly group_id: string; readonly by?: Aid };
  /** Chat requests that wait, and who sent them. */
  'chat.invites': { readonly count: number; readonly peers: readonly Aid[] };
  'chat.unread': { readonly peer: Aid; readonly unread_count: number };
  'chat.received': { readonly peer: Aid; readonly seq: number };
  /** Another agent offers a file. */
  'file.offered': { readonly offer_id: string; readonly from: Aid };
  /** An offer was taken, declined or withdrawn at the other end. */
  'file.answered': {
    readonly offer_id: string;
    readonly peer: Aid;
    readonly state: Exclude<FileOfferState, 'open' | 'expired'>;
  };
  /** The connection to the node of agents that this one speaks with goes another way from now on. */
  'path.changed': {
    readonly node: Aid;
    readonly agents: readonly Aid[];
    readonly path: PathKind;
    readonly before: PathKind;
    /** Where packets go now, `host:port`: on a relayed path, the relay. */
    readonly address: string;
    readonly is_relayed: boolean;
  };
}

export type EventType = keyof EventPayloads;

/** Every kind that is logged. */
export const EVENT_TYPES = [
  'mailbox.received',
  'mailbox.sent',
  'mailbox.expired',
  'group.unread',
  'group.mentioned',
  'group.appended',
  'group.removed',
  'chat.invites',
  'chat.unread',
  'chat.received',
  'file.offered',
  'file.answered',
  'path.changed',
] as const satisfies readonly EventType[];

/** All agents that the owner does not know; as a cause of events, they are one. */
export const STRANGERS = 'strangers';

/** Who caused an event. */
export type EventCause = typeof STRANGERS | Aid | `room ${string}`;

/** A peer as the cause of an event. */
export function causeOf(peer: Aid, isKnown: boolean): EventCause {
  return isKnown ? peer : STRANGERS;
}

/** Where capabilities leave word of what happened. */
export interface EventSink {
  /**
   * Logs an event. Inside a transaction of the store it is kept exactly where the transaction is,
   * and subscribers hear of it after the commit, never before.
   * @param cause who caused it: its events use a part of the log only; left out for the agent itself
   * @returns its place in the log of this daemon
   * @throws SvcError `not_writable`, `store_corrupt`
   */
  emit<T extends EventType>(aid: Aid, type: T, data: EventPayloads[T], cause?: EventCause): number;
}
