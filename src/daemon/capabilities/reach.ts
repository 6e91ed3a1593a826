/** Reports and events about how this node reaches other nodes. */
import type { AddressBook } from '../../capabilities/address-book/address-book.ts';
import type { EventLog } from '../../capabilities/events/event-log.ts';
import { locateNode } from '../../capabilities/reach/locate-node.ts';
import { PathEvents } from '../../capabilities/reach/path-events.ts';
import { ReachReport } from '../../capabilities/reach/reach-report.ts';
import { TrafficHistory } from '../../capabilities/reach/traffic.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';

interface Parts {
  readonly links: AgentLinks;
  readonly eventLog: EventLog;
  readonly addressBook: AddressBook;
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
}

export function buildReachReport(
  { life, clock, log, configuration, node }: Foundation,
  { pool, records, ownAddresses, portMapper, resolver, interfaces, kindOf, reach }: Network,
  { identity, registry }: Agents,
  { links, eventLog, addressBook, isKnown }: Parts,
): ReachReport {
  const pairsWith = (nodeKey: Uint8Array) => links.pairsWith(nodeKey);
  const isAgent = (aid: Aid): boolean => registry.identity(aid) !== null;
  const pathEvents = new PathEvents({ clock, log: log.child('links'), pairsWith, isAgent, isKnown, events: eventLog });
  life.defer(pool.onPathChange((change) => pathEvents.onChange(change)));
  life.defer(() => pathEvents.stop());
  pool.locateBy((nodeKey, signal) => locateNode(nodeKey, links.agentsOn(nodeKey), resolver, signal));
  return new ReachReport({
    clock,
    nodeKey: node.key.publicKey,
    pool,
    links,
    records,
    ownAddresses,
    portMapper,
    helpers: reach.helpers,
    labels: () => addressBook.get().aliases,
    reach,
    relayDisabled: () => configuration.current.disable_relay,
    interfaces,
    kindOf: (address) => kindOf(address, true),
    isHere: (aid) => identity(aid) !== null,
    resolver,
  });
}

export function buildTraffic(
  { life, clock, log }: Foundation,
  { pool, lanes, records }: Network,
  tunnels: { readonly active: number },
): TrafficHistory {
  const read = () => {
    const { connections, bytesSent, bytesReceived } = pool.stats();
    const bulk = lanes.stats();
    const { peers, ready } = records.reachability();
    return {
      bytesUp: bytesSent + bulk.sent,
      bytesDown: bytesReceived + bulk.received,
      links: connections,
      peers,
      tunnels: tunnels.active,
      ready,
    };
  };
  const traffic = new TrafficHistory(clock, read, log);
  life.add('acting', traffic);
  return traffic;
}
