/** The most serious problem of a node, and the pending items of its owner. */
import { DELEGATION_WARN_MS } from '../../../src/foundation/domain/agents.ts';

export interface AgentState {
  readonly aid: string;
  readonly published: boolean;
  readonly service_tcp: string;
  readonly service_tcp_ok: boolean;
  readonly delegation: { readonly expires_at: string | null };
}

export interface Counters {
  readonly mailbox?: number | undefined;
  readonly chat_invites?: number | undefined;
  readonly chat_unread?: number | undefined;
  readonly access_requests?: number | undefined;
}

/** Number of pending items. */
export function countOf(counters: Counters | undefined): number {
  const { mailbox = 0, chat_invites = 0, chat_unread = 0, access_requests = 0 } = counters ?? {};
  return mailbox + chat_invites + chat_unread + access_requests;
}

export type Problem = 'closed' | 'expired' | 'offline' | 'service' | 'unpublished' | 'ending' | 'none' | 'empty';

export interface Verdict {
  readonly problem: Problem;
  /** The affected agents. */
  readonly aids: readonly string[];
}

function endsIn({ delegation }: AgentState, now: number): number {
  return delegation.expires_at === null ? Infinity : Date.parse(delegation.expires_at) - now;
}

/**
 * @param now milliseconds since 1970
 * @param isClosed the database lost changes, so the agents are closed to other nodes
 */
export function verdictOf(isReady: boolean, agents: readonly AgentState[], now: number, isClosed = false): Verdict {
  if (isClosed) return { problem: 'closed', aids: [] };
  if (!isReady) return { problem: 'offline', aids: [] };
  if (agents.length === 0) return { problem: 'empty', aids: [] };
  const problems: readonly [Problem, (agent: AgentState) => boolean][] = [
    ['expired', (agent) => endsIn(agent, now) <= 0],
    ['service', (agent) => agent.service_tcp !== '' && !agent.service_tcp_ok],
    ['unpublished', (agent) => !agent.published],
    ['ending', (agent) => endsIn(agent, now) < DELEGATION_WARN_MS],
  ];
  for (const [problem, has] of problems) {
    const aids = agents.filter(has).map(({ aid }) => aid);
    if (aids.length > 0) return { problem, aids };
  }
  return { problem: 'none', aids: [] };
}

/** The address at which other machines see this node. Undefined if no node has reported one. */
export function publicAddress(observed: readonly string[]): string | undefined {
  return observed.find((address) => !/^(127\.|\[::1\])/.test(address));
}

export type WaitingKind = 'invites' | 'unread' | 'notes' | 'ending' | 'expired';

export interface Waiting {
  readonly kind: WaitingKind;
  readonly aid: string;
  /** A count, or the remaining milliseconds. */
  readonly n: number;
}

/** Pending items by agent, requests first. */
export function waitingOf(
  agents: readonly AgentState[],
  pending: Readonly<Record<string, Counters>>,
  now: number,
): readonly Waiting[] {
  const kinds: readonly [WaitingKind, keyof Counters][] = [
    ['invites', 'chat_invites'],
    ['unread', 'chat_unread'],
    ['notes', 'mailbox'],
  ];
  const counted = kinds.flatMap(([kind, name]) =>
    Object.entries(pending).flatMap(([aid, counters]) => {
      const n = counters[name] ?? 0;
      return n > 0 ? [{ kind, aid, n }] : [];
    }),
  );
  const ending = agents
    .filter((agent) => endsIn(agent, now) < DELEGATION_WARN_MS)
    .map((agent): Waiting => {
      const left = endsIn(agent, now);
      return { kind: left <= 0 ? 'expired' : 'ending', aid: agent.aid, n: Math.max(0, left) };
    });
  return [...counted, ...ending];
}
