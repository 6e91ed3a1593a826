/** Builds the capabilities in dependency order. Each has its own file. */
import { askOwnerOver } from '../capabilities/access/asking.ts';
import { AddressBook } from '../capabilities/address-book/address-book.ts';
import type { ApiReference } from './api.ts';
import { buildAccess, buildAccessRequests } from './capabilities/access.ts';
import { buildAgents } from './capabilities/agents.ts';
import { buildCards } from './capabilities/cards.ts';
import { buildDirectory } from './capabilities/directory.ts';
import { buildEventLog, buildEventStreams, buildNodeEvents } from './capabilities/events.ts';
import { buildFileOffers, buildObjects, buildOffered } from './capabilities/files.ts';
import { buildHooks } from './capabilities/hooks.ts';
import { buildLinks } from './capabilities/links.ts';
import { buildGroups, buildJoining, buildMessages } from './capabilities/messages.ts';
import { buildPublicAddresses } from './capabilities/public-addresses.ts';
import { buildPublicNames } from './capabilities/public-names.ts';
import { buildReachReport, buildTraffic } from './capabilities/reach.ts';
import { buildCalls, buildOrigins, buildPush, buildTunnels } from './capabilities/services.ts';
import { buildTraces } from './capabilities/traces.ts';
import type { Foundation } from './foundation.ts';
import type { Network } from './network.ts';

export type Capabilities = ReturnType<typeof buildCapabilities>;

/** Only creates them; `life` starts them. When an agent is removed, its data is deleted in this order. */
export function buildCapabilities(f: Foundation, n: Network, api: ApiReference) {
  const agents = buildAgents(f, n, api);
  const directory = buildDirectory(f, n, agents);
  const access = buildAccess(f, agents, api);
  const offered = buildOffered(f, access);
  const links = buildLinks(f, n, agents, access, offered);
  const askOwner = askOwnerOver(links, f.clock, (aid) => directory.directory.summary(aid).name);
  const traces = buildTraces(f, agents, access, links);
  const calls = buildCalls(f, agents, access, links, askOwner, traces);
  const objects = buildObjects(f, agents, access, offered, links);
  const eventLog = buildEventLog(f);
  const shared = { links, events: eventLog, objects: objects.objects };
  const addressBook = new AddressBook(f.meta);
  const messages = buildMessages(f, n, agents, directory, { ...shared, access, addressBook });
  const requests = buildAccessRequests(f, agents, access, links, eventLog, messages.isKnown);
  const groups = buildGroups(f, agents, { ...shared, ...messages }, n);
  const tunnels = buildTunnels(f, agents, access, links, n, askOwner);
  const streams = buildEventStreams(f, agents, eventLog, { ...messages, ...requests });
  const cards = buildCards(f, n, agents, directory, objects);
  const push = buildPush(f, n, agents, access, links);
  const fileOffers = buildFileOffers(f, agents, {
    ...objects,
    ...messages,
    access,
    offered,
    network: n.records,
    addressBook,
    events: eventLog,
  });
  const { hooks, onDemand, channel } = buildHooks(f, agents, api, {
    ...messages,
    ...calls,
    ...requests,
    groups,
    eventLog,
    ...streams,
    ...fileOffers,
  });
  const publicNames = buildPublicNames(f, n, agents, links);
  const reachReport = buildReachReport(f, n, agents, { links, eventLog, addressBook, isKnown: messages.isKnown });
  return {
    ...agents,
    ...directory,
    ...access,
    ...requests,
    ...calls,
    ...traces,
    ...objects,
    ...messages,
    ...fileOffers,
    ...tunnels,
    ...cards,
    ...push,
    ...buildOrigins(f, agents, calls, tunnels, cards, push, askOwner),
    ...streams,
    ...buildJoining(f, n, agents, directory, (entry, token) => publicNames.publicNames.invited(entry, token)),
    ...publicNames,
    ...buildPublicAddresses(f, n, agents, publicNames, calls, cards),
    ...buildNodeEvents(f, n, agents, { links, access, directory }),
    eventLog,
    groups,
    hooks,
    onDemand,
    channel,
    addressBook,
    reachReport,
    traffic: buildTraffic(f, n, tunnels.tunnels),
  };
}
