/** What waits for the agents of this daemon: the counters of notes and chat together. */
import type { Aid } from '../../foundation/identity/aid.ts';

/** Counters of one agent; one that is left out counts nothing. */
export interface PendingCounts {
  readonly mailbox?: number;
  readonly chat_invites?: number;
  readonly chat_unread?: number;
}

/** Counters of all agents with something waiting, or of one. Local and cheap: it is asked at every answer. */
export type PendingProvider = (aid?: Aid) => ReadonlyMap<Aid, PendingCounts>;

const KEYS = ['mailbox', 'chat_invites', 'chat_unread'] as const;

export type PendingView = Record<string, { mailbox: number; chat_invites: number; chat_unread: number }>;

export class PendingCounters {
  readonly #providers: readonly PendingProvider[];

  constructor(providers: readonly PendingProvider[]) {
    this.#providers = providers;
  }

  /** All counters of each agent for which something waits, zeros too, by AID. */
  view(aid?: Aid): PendingView {
    const view: PendingView = {};
    for (const provider of this.#providers) {
      for (const [owner, counts] of provider(aid)) {
        if (aid !== undefined && owner !== aid) continue;
        for (const key of KEYS) {
          const count = counts[key] ?? 0;
          if (count <= 0) continue;
          const own = (view[owner] ??= { mailbox: 0, chat_invites: 0, chat_unread: 0 });
          own[key] += count;
        }
      }
    }
    return view;
  }
}
