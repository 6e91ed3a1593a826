/** Handlers of the operations on identities and local agents. */
import type { Static } from 'typebox';
import type { AgentRegistry } from '../../capabilities/agents/registry.ts';
import type { LocalAgent } from '../../capabilities/agents/types.ts';
import type { ProfileCard } from '../../capabilities/directory/cards.ts';
import type { Directory } from '../../capabilities/directory/directory.ts';
import { type PublicationSummary, withinDelegation } from '../../capabilities/directory/summaries.ts';
import type { AgentResolver } from '../../capabilities/directory/types.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, isoTime, unixSeconds } from '../../foundation/clock.ts';
import { isUnresolved, SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid, schemeOf } from '../../foundation/identity/aid.ts';
import { encodeDelegation } from '../../foundation/identity/delegation.ts';
import { makeNativeIdentity } from '../../foundation/identity/native-identity.ts';
import type { NewAids } from '../../foundation/identity/new-identities.ts';
import { memoizeByObject } from '../../foundation/lazy.ts';
import { type AclView, AGENTS_PAGE_DEFAULT, type agentOperations } from '../agents.ts';
import type { BoundOperation, Declaration, Handlers, ResultOf } from '../operation.ts';
import type { Pending } from '../schemas.ts';
import type { ActingAgent } from './local-agents.ts';
import { timeOrNull } from './values.ts';

// Counts heartbeats as the declarations say, for every surface.

interface HeartbeatDependencies extends ActingAgent {
  readonly record: (aid: Aid) => void;
  /** The local agent of a tunnel; undefined if the tunnel does not exist. */
  readonly tunnelAid: (id: string) => Aid | undefined;
}

/** The operations, reporting each success that counts as a heartbeat. */
export function countHeartbeats(
  operations: readonly BoundOperation[],
  { record, localAid, tunnelAid }: HeartbeatDependencies,
): readonly BoundOperation[] {
  const aliveBy = (rule: Declaration['heartbeat'], input: Readonly<Record<string, unknown>>): Aid | undefined => {
    if (rule === 'tunnel') return tunnelAid(String(input['id']));
    const text = input[rule === 'local_aid' ? 'local_aid' : 'aid'];
    const named = typeof text === 'string' ? parseAid(text) : undefined;
    return rule === 'local_aid' ? localAid(named) : named;
  };
  return operations.map((operation) => {
    const { heartbeat } = operation.declaration;
    if (heartbeat === false) return operation;
    return {
      declaration: operation.declaration,
      async run(input, context) {
        // Determined before the operation runs: by its end, there may be a second agent, or the tunnel may be closed.
        const alive = aliveBy(heartbeat, input);
        const output = await operation.run(input, context);
        if (alive !== undefined) record(alive);
        return output;
      },
    };
  });
}

export interface AgentHandlerDependencies {
  readonly agents: AgentRegistry;
  readonly directory: Directory;
  readonly newAids: NewAids;
  readonly resolver: AgentResolver;
  readonly clock: Clock;
  /** The Ed25519 key of this node. */
  readonly nodeKey: Uint8Array;
  /** The key that proves callers to the service of an agent. */
  readonly callerKey: (aid: Aid) => Uint8Array;
  /** The access list of an agent, secrets redacted. */
  readonly acl: (aid: Aid) => Static<typeof AclView>;
  /** The access lists of several agents. */
  readonly acls: (aids: readonly Aid[]) => ReadonlyMap<Aid, Static<typeof AclView>>;
  /** Pending items by AID, without agents that have none. */
  readonly pendingCounters: () => Static<typeof Pending>;
  /** Whether other nodes can connect to this one; undefined if unknown. */
  readonly reachable: () => boolean | undefined;
}

/** A profile in the form of the API. */
export function profileView({ cardHash, wakesWithinS, ...card }: ProfileCard) {
  return { ...card, card_hash: cardHash, wakes_within_s: wakesWithinS };
}

/** Caches times as text: a list of a thousand agents has three thousand, which rarely change. */
const publicationTimes = memoizeByObject(({ lastPublishAt, nextRepublishAt, recordExpiresAt }: PublicationSummary) => ({
  lastPublishAt: timeOrNull(lastPublishAt),
  nextRepublishAt: timeOrNull(nextRepublishAt),
  recordExpiresAt: timeOrNull(recordExpiresAt),
}));

const delegationView = memoizeByObject(({ issuedAt, expiresAt }: LocalAgent['window']) => ({
  issued_at: isoTime(issuedAt * 1000),
  expires_at: timeOrNull(expiresAt === 0 ? null : expiresAt * 1000),
}));

function agentView(agent: LocalAgent, published: PublicationSummary, acl: Static<typeof AclView>, now: number) {
  const summary = withinDelegation(published, agent.window.expiresAt, now);
  const times = publicationTimes(summary);
  return {
    aid: agent.aid,
    name: summary.name || undefined,
    scheme: schemeOf(agent.aid),
    status: summary.everPublished ? ('registered' as const) : ('pending' as const),
    service_tcp: agent.serviceTcp,
    service_before: agent.serviceBefore ?? undefined,
    service_tcp_ok: agent.serviceOk === true,
    service_error: agent.serviceError,
    heartbeat_seconds_ago: agent.heartbeatSecondsAgo,
    seq: summary.seq,
    published: summary.published,
    last_publish_at: times.lastPublishAt,
    next_republish_estimate: times.nextRepublishAt,
    record_expires_at: times.recordExpiresAt,
    replicas: summary.replicas,
    services: summary.services,
    profile: summary.profile === null ? undefined : profileView(summary.profile),
    acl,
    delegation: delegationView(agent.window),
  };
}

export function agentHandlers(deps: AgentHandlerDependencies): Handlers<typeof agentOperations> {
  const { agents, directory, resolver, clock, nodeKey, callerKey, acl, acls, pendingCounters, reachable } = deps;

  function oneAgent(agent: LocalAgent): ResultOf<typeof agentOperations.agentGet> {
    const { aid } = agent;
    const waiting = pendingCounters()[aid];
    const view = agentView(agent, directory.summary(aid), acl(aid), clock.now());
    return waiting === undefined ? view : { ...view, pending: { [aid]: waiting } };
  }

  /** The published record of an agent, or null. */
  async function published(aid: Aid, signal: AbortSignal) {
    try {
      return await resolver.resolve(aid, { fresh: true, signal });
    } catch (error) {
      if (isUnresolved(error)) return null;
      throw error;
    }
  }

  return {
    identityGenerate: () => {
      const { aid, master, operational, delegation } = makeNativeIdentity(unixSeconds(clock));
      deps.newAids.add(aid);
      return {
        aid,
        master_private_key_hex: toHex(master.seed),
        operational_private_key_hex: toHex(operational.seed),
        delegation_proof_hex: toHex(encodeDelegation(delegation)),
        warning:
          'The master key is shown once and stored nowhere. Keep it safe and offline: without it, this AID cannot be restored.',
      };
    },
    agentRegister: async (input) => {
      const aid = await agents.register({
        operationalPrivateKeyHex: input.operational_private_key_hex,
        delegationProofHex: input.delegation_proof_hex,
        ...(input.service_tcp === undefined ? {} : { serviceTcp: input.service_tcp }),
        isHeld: input.publish === false,
        isTemporary: input.temporary === true,
      });
      return { aid, status: 'registered' };
    },
    agentsList: ({ limit = AGENTS_PAGE_DEFAULT, cursor }) => {
      const page = agents.list(limit, cursor);
      const aids = page.agents.map((agent) => agent.aid);
      const summaries = directory.summaries(aids);
      const lists = acls(aids);
      const pending = pendingCounters();
      const now = clock.now();
      return {
        agents: page.agents.map((agent) =>
          agentView(
            agent,
            summaries.get(agent.aid) ?? directory.summary(agent.aid),
            lists.get(agent.aid) ?? acl(agent.aid),
            now,
          ),
        ),
        next_cursor: page.nextCursor ?? undefined,
        ...(Object.keys(pending).length === 0 ? {} : { pending }),
      };
    },
    agentGet: async ({ aid }) => oneAgent(await agents.getFresh(aid)),
    agentExport: ({ aid }, context) => {
      if (context.origin !== 'local') throw new SvcError('local_only');
      const { operationalPrivateKeyHex, delegationProofHex, serviceTcp } = agents.export(aid);
      return {
        aid,
        operational_private_key_hex: operationalPrivateKeyHex,
        delegation_proof_hex: delegationProofHex,
        service_tcp: serviceTcp,
      };
    },
    agentCallerKey: ({ aid: named }, context) => {
      if (context.origin !== 'local') throw new SvcError('local_only');
      const { aid } = agents.get(named);
      return { aid, caller_key_hex: toHex(callerKey(aid)) };
    },
    agentPatch: async (input, context) => {
      const key = input.operational_private_key_hex;
      const agent = await agents.patch(input.aid, {
        serviceTcp: input.service_tcp,
        local: context.origin === 'local',
        isTemporary: input.temporary === true,
        ...(key === undefined ? {} : { operationalPrivateKeyHex: key }),
      });
      return oneAgent(agent);
    },
    agentDelete: ({ aid }) => {
      agents.delete(aid);
      return { ok: true };
    },
    agentProbe: async ({ aid }, context) => {
      const [tcp, found] = await Promise.all([agents.checkService(aid), published(aid, context.signal)]);
      return {
        service_tcp_ok: tcp?.ok ?? null,
        tcp_error: tcp?.error,
        tcp_ms: tcp?.ok === true ? tcp.ms : undefined,
        dht_ok: found !== null && equalBytes(found.payload.nodeKey, nodeKey),
        published_endpoints: found?.payload.endpoints ?? [],
        published_nat_type: found?.payload.natType ?? null,
        published_seq: found?.record.seq ?? null,
        reachable_from_peers: reachable(),
      };
    },
    agentHeartbeat: ({ aid }) => ({ status: 'ok', at: isoTime(agents.heartbeat(aid)) }),
  };
}
