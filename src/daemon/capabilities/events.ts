/** Events of local agents, stored and streamed, and counters of pending items. */
import type { AccessRequests } from '../../capabilities/access/requests.ts';
import { EventLog } from '../../capabilities/events/event-log.ts';
import { EventStreams } from '../../capabilities/events/event-streams.ts';
import { EventWaits } from '../../capabilities/events/event-waits.ts';
import { NodeEvents, NodeWatch } from '../../capabilities/events/node-events.ts';
import { PendingCounters } from '../../capabilities/events/pending-counters.ts';
import type { TunnelService } from '../../capabilities/tunnels/tunnel-service.ts';
import type { Updater } from '../../capabilities/update/updater.ts';
import { formatAddress } from '../../foundation/address.ts';
import { isoTime } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { nativeAid } from '../../foundation/identity/aid.ts';
import { immediateClock } from '../../foundation/immediate-clock.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { EventStore } from '../../foundation/store/events.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { PathChange } from '../../network/peers/peer.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { DirectoryParts } from './directory.ts';
import type { Messages } from './messages.ts';

// Events of the node itself and their sources.

/** Concurrent streams of node events. */
const MAX_NODE_SUBSCRIBERS = 100;

interface Parts {
  readonly links: AgentLinks;
  readonly access: Access;
  readonly directory: DirectoryParts;
}

export function buildNodeEvents(
  { life, clock, log, node, configuration }: Foundation,
  { pool }: Network,
  { registry }: Agents,
  { links, access, directory }: Parts,
) {
  const nodeEvents = new NodeEvents(node.aid, clock);
  life.defer(
    access.callers.onRefused(({ caller, called, kind, code }) =>
      nodeEvents.emit('call.refused', { caller, kind, code }, called),
    ),
  );
  life.defer(
    configuration.onChange((changed) => {
      nodeEvents.emit('config', { keys: [...changed] });
    }),
  );
  directory.published.add(({ aid, type, seq }) => {
    if (type === RECORD.endpoints) nodeEvents.emit('agent.published', { seq }, aid);
  });
  registry.onServiceState(({ service, ok, error }) => {
    for (const aid of registry.agentsBoundTo(service)) nodeEvents.emit('agent.service', { service, ok, error }, aid);
  });
  registry.onChange(({ aid, kind }) => {
    if (kind === 'deleted') nodeEvents.emit('agent.deleted', {}, aid);
    if (kind === 'registered') nodeEvents.emit('agent.registered', {}, aid);
    if (kind !== 'rotated') return;
    const { issuedAt, expiresAt } = registry.get(aid).window;
    const end = expiresAt === 0 ? null : isoTime(expiresAt * 1000);
    nodeEvents.emit('agent.delegation', { issued_at: isoTime(issuedAt * 1000), expires_at: end }, aid);
  });
  const onPath = ({ nodeKey, path, before }: PathChange): void => {
    const agents = [...new Set(links.pairsWith(nodeKey).map(({ remote }) => remote))];
    const met = { node: nativeAid(nodeKey), agents };
    if (path === null) return nodeEvents.emit('link.closed', met);
    const now = {
      ...met,
      path: path.kind,
      address: formatAddress(path.remote),
      is_relayed: isRelayed(path.kind),
    };
    if (before === null) nodeEvents.emit('link.opened', now);
    else if (path.kind !== before.kind || path.remote.host !== before.remote.host)
      nodeEvents.emit('link.path', { ...now, before: before.kind });
  };
  life.defer(pool.onPathChange(onPath));
  const nodeEventStreams = new EventStreams(nodeEvents, () => ({}), immediateClock(clock), log, MAX_NODE_SUBSCRIBERS);
  return { nodeEvents, nodeEventStreams };
}

/** Polls state that has no change notification. */
export function buildNodeWatch(
  { life, clock, log }: Foundation,
  { records }: Network,
  { nodeEvents, tunnels }: { readonly nodeEvents: NodeEvents; readonly tunnels: TunnelService },
  updater: Updater,
): void {
  const watch = new NodeWatch({
    clock,
    log,
    events: nodeEvents,
    network: () => {
      const { ready, peers } = records.reachability();
      return { ready, peers };
    },
    update: () => {
      const { state, latestVersion, lastError } = updater.status();
      return { state, latest_version: latestVersion, error: lastError };
    },
    tunnels,
  });
  life.add('acting', watch);
}

export function buildEventLog({ life, clock, log, store }: Foundation): EventLog {
  const eventLog = new EventLog(new EventStore(store), clock, log);
  life.add('answering', eventLog);
  return eventLog;
}

/** Streams start and stop with the API that serves them, waits with the operations. */
export function buildEventStreams(
  { clock, log }: Foundation,
  { onDeleted }: Agents,
  eventLog: EventLog,
  { notes, chat, accessRequests }: Messages & { readonly accessRequests: AccessRequests },
) {
  const pending = new PendingCounters([
    () => new Map([...notes.pending()].map(([aid, mailbox]) => [aid, { mailbox }])),
    () => new Map([...chat.pending()].map(([aid, c]) => [aid, { chat_invites: c.invites, chat_unread: c.unread }])),
    () => new Map([...accessRequests.pending()].map(([aid, access_requests]) => [aid, { access_requests }])),
  ]);
  const eventStreams = new EventStreams(eventLog, (aid) => pending.view(aid ?? undefined), immediateClock(clock), log);
  const eventWaits = new EventWaits(eventLog, immediateClock(clock), log);
  onDeleted((aid) => {
    eventStreams.endStreamsOf(aid);
    eventWaits.forget(aid);
    eventLog.forget(aid);
  });
  return { pending, eventStreams, eventWaits };
}
