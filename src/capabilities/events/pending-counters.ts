/** The pending counters of the local agents: notes, chat and requests for access. */
import type { Aid } from '../../foundation/identity/aid.ts';

/** Counters of one agent. A missing counter is 0. */
export interface PendingCounts {
  readonly mailbox?: number;
  readonly chat_invites?: number;
  readonly chat_unread?: number;
  readonly access_requests?: number;
}

/** Counters of all agents with pending items, or of one agent. Local and fast, because it runs for every response. */
export type PendingProvider = (aid?: Aid) => ReadonlyMap<Aid, PendingCounts>;

const KEYS = ['mailbox', 'chat_invites', 'chat_unread', 'access_requests'] as const;

/** `access_requests` is absent without such requests. */
export type PendingView = Record<
  string,
  { mailbox: number; chat_invites: number; chat_unread: number; access_requests?: number }
>;

export class PendingCounters {
  readonly #providers: readonly PendingProvider[];

  constructor(providers: readonly PendingProvider[]) {
    this.#providers = providers;
  }

  /** All counters by AID, including zeros, of agents with pending items. */
  view(aid?: Aid): PendingView {
    const view: PendingView = {};
    for (const provider of this.#providers) {
      for (const [owner, counts] of provider(aid)) {
        if (aid !== undefined && owner !== aid) continue;
        for (const key of KEYS) {
          const count = counts[key] ?? 0;
          if (count <= 0) continue;
          const own = (view[owner] ??= { mailbox: 0, chat_invites: 0, chat_unread: 0 });
          own[key] = (own[key] ?? 0) + count;
        }
      }
    }
    return view;
  }
}
