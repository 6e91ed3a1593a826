/** Serves every operation of the table over REST, and the hand-written routes. */

import { fetchWhole } from '../capabilities/calls/fetch-service.ts';
import { chooseLocalAid, type LocalAgents, onlyLocalAid } from '../capabilities/calls/local-aid.ts';
import { Catalog } from '../capabilities/directory/catalog.ts';
import { discover, RecentServices, type Search } from '../capabilities/directory/discovery.ts';
import { probeName } from '../capabilities/public-names/probe-name.ts';
import type { Updater } from '../capabilities/update/updater.ts';
import { homeDirectory } from '../foundation/data-dir/paths.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { mergeNames, type NamedAgents } from '../foundation/labels.ts';
import { readPackageFile } from '../foundation/package-file.ts';
import { UnansweredRequestStore } from '../foundation/store/unanswered-requests.ts';
import { VERSION } from '../foundation/version.ts';
import type { Reachability } from '../network/records/types.ts';
import { notHeard } from '../network/resolver.ts';
import { accessHandlers, accessRequestHandlers } from '../operations/handlers/access.ts';
import { addressBookHandlers } from '../operations/handlers/address-book.ts';
import { agentHandlers, countHeartbeats } from '../operations/handlers/agents.ts';
import { callHandlers, evidenceHandlers } from '../operations/handlers/calls.ts';
import { cardHandlers } from '../operations/handlers/cards.ts';
import { chatHandlers } from '../operations/handlers/chat.ts';
import { catalogHandlers, directoryHandlers } from '../operations/handlers/directory.ts';
import { doctorHandlers } from '../operations/handlers/doctor.ts';
import { entryHandlers } from '../operations/handlers/entry.ts';
import { eventHandlers, eventStreamHandlers, nodeEventHandlers } from '../operations/handlers/events.ts';
import { bindStreams } from '../operations/handlers/exchange.ts';
import { exposureHandlers } from '../operations/handlers/exposures.ts';
import { fileOfferHandlers, fileOfferStreamHandlers } from '../operations/handlers/file-offers.ts';
import { groupHandlers } from '../operations/handlers/groups.ts';
import { hookHandlers } from '../operations/handlers/hooks.ts';
import { hubHandlers } from '../operations/handlers/hub.ts';
import { joiningHandlers } from '../operations/handlers/joining.ts';
import { mailHandlers } from '../operations/handlers/mail.ts';
import { movingHandlers } from '../operations/handlers/moving.ts';
import { nodeHandlers } from '../operations/handlers/node.ts';
import { objectHandlers, objectStreamHandlers } from '../operations/handlers/objects.ts';
import { originHandlers } from '../operations/handlers/origins.ts';
import { panelHandlers } from '../operations/handlers/panel.ts';
import { processHandlers, updateHandlers } from '../operations/handlers/process.ts';
import { pushHandlers } from '../operations/handlers/push.ts';
import { reachHandlers } from '../operations/handlers/reach.ts';
import { remoteAdminHandlers } from '../operations/handlers/remote-admin.ts';
import { Repeats } from '../operations/handlers/repeats.ts';
import { mcpHostHandlers, toolHandlers } from '../operations/handlers/tools.ts';
import { traceHandlers } from '../operations/handlers/traces.ts';
import { tunnelHandlers } from '../operations/handlers/tunnels.ts';
import { walletHandlers } from '../operations/handlers/wallets.ts';
import { operations, servedStreams } from '../operations/index.ts';
import { type BoundOperation, bind } from '../operations/operation.ts';
import { addLabels } from '../operations/result-labels.ts';
import { ToolTable } from '../operations/tool-call.ts';
import type { AskChannel } from '../surfaces/mcp/channel.ts';
import { mcpHandlers } from '../surfaces/mcp/stream.ts';
import { hubStreamHandlers } from '../surfaces/mcp-hub/stream.ts';
import { gatewayHandlers, viaHandlers } from '../surfaces/rest/gateway.ts';
import { PanelFiles, panelPageHandlers } from '../surfaces/rest/panel-page.ts';
import { RestServer } from '../surfaces/rest/server.ts';
import { TokenCheck } from '../surfaces/rest/token.ts';
import { buildHub } from './capabilities/hub.ts';
import type { Capabilities } from './capabilities.ts';
import type { Foundation } from './foundation.ts';
import type { ProcessControl } from './life.ts';
import { mcpHosts } from './mcp-command.ts';
import { buildMover } from './moving.ts';
import type { Network } from './network.ts';
import type { Panel } from './panel.ts';
import { type Bound, connectable, StatusReports } from './status.ts';

/** Local agents whose profile names are accepted in place of AIDs. */
const MAX_NAMED_AGENTS = 200;

/** Whether other nodes can reach this node without its help; undefined if not known. */
export function isReachableFromPeers({ peers, natType, inRoutingTables }: Reachability): boolean | undefined {
  return peers === 0 || natType === 0 ? undefined : inRoutingTables;
}

/**
 * Builds the API and the MCP tools.
 * @param bound listen addresses by purpose
 */
export function buildSurfaces(
  f: Foundation,
  n: Network,
  c: Capabilities & { readonly updater: Updater; readonly panel: Panel },
  bound: () => Bound,
  ending: ProcessControl,
) {
  const { clock, config, configuration, log, node } = f;
  const token = (): string => configuration.current.api_token;
  const check = new TokenCheck(token, c.panel.logins);
  const reports = new StatusReports({ ...f, ...n, ...c, dataDir: f.dataDir.path, bound });
  const requireAgent = (aid: Aid): Aid => c.registry.get(aid).aid;
  const pendingCounters = () => c.pending.view();
  const reachable = () => isReachableFromPeers(n.records.reachability());
  const heartbeat = (aid: Aid): void => {
    if (c.registry.identity(aid) !== null) c.registry.heartbeat(aid);
  };
  const api = (): string => `http://${connectable(bound().api_addr)}`;
  const recent = new RecentServices(n.records, { clock });
  const search = async (wanted: Search) => {
    const since = clock.now();
    let isHeard = true;
    const onHeard = (isEnough: boolean): void => {
      isHeard &&= isEnough;
    };
    const found = await discover(n.records, { ...wanted, onHeard });
    const cause = found.length === 0 ? await n.outages.explainFailure(since) : null;
    if (cause !== null) throw cause;
    if (found.length === 0 && !isHeard) throw notHeard({});
    recent.note(found);
    return found;
  };
  const catalog = new Catalog({
    nodeAid: node.aid,
    clock,
    directory: c.directory,
    agents: (limit) => c.registry.list(limit).agents.map(({ aid }) => aid),
    discover: search,
    api,
  });
  const hub = buildHub(f, c, catalog);
  const repeats = new Repeats(new UnansweredRequestStore(f.store), clock, log);
  const { toolCall, ...others } = operations;
  // The doctor uses these too.
  const examined = {
    ...nodeHandlers({
      status: () => reports.status(),
      config: configuration,
      filesRoot: c.filesRootSetting,
      rollback: f.rollback,
      debug: reports.debug(),
    }),
    ...joiningHandlers({ joining: c.joining }),
    ...entryHandlers({ ...c, lending: n.reach.lending }),
    ...reachHandlers({ ...c, exit: n.exit }),
    ...agentHandlers({
      agents: c.registry,
      directory: c.directory,
      newAids: c.newAids,
      resolver: n.resolver,
      clock,
      nodeKey: node.key.publicKey,
      callerKey: c.callerKey,
      acl: (aid) => c.accessLists.view(aid),
      acls: (aids) => c.accessLists.views(aids),
      pendingCounters,
      reachable,
    }),
    ...addressBookHandlers({ addressBook: c.addressBook, clock }),
    ...updateHandlers({ updater: c.updater }),
    ...hookHandlers({ hooks: c.hooks, onDemand: c.onDemand, proofKey: f.dataDir.proofKey, clock, requireAgent }),
  };
  const profileNames = (aids: readonly Aid[]): NamedAgents => {
    const summaries = c.directory.summaries(aids);
    return aids.map((aid) => ({ aid, name: summaries.get(aid)?.name }));
  };
  const ownNames = () => profileNames(c.registry.list(MAX_NAMED_AGENTS).agents.map(({ aid }) => aid));
  // Requests may name an agent by a label.
  const agent = (text: string): Aid => c.addressBook.agent(text, ownNames);
  const local: LocalAgents = {
    ...c.local,
    named: (aids) => {
      const names = mergeNames(c.addressBook.get(), profileNames(aids));
      return aids.map((aid) => ({ aid, name: names.get(aid) }));
    },
  };
  const localAid = (named: Aid | undefined): Aid => chooseLocalAid(local, node.aid, named);
  const counted = countHeartbeats(
    bind(others, {
      ...examined,
      ...doctorHandlers({
        ...{ ask: examined, clock, dialSome: n.dialSome, api, token },
        publicNames: {
          names: () => c.publicNames.list().map(({ name }) => name),
          domains: () => c.entryNames.domains,
          probe: (name) => probeName(name, { clock }),
          resolve: n.lookupHost,
        },
      }),
      ...processHandlers({ log: f.recentLog, pid: process.pid, ...ending }),
      ...evidenceHandlers({ evidence: c.evidence }),
      ...walletHandlers({ agents: c.registry, newAids: c.newAids, clock }),
      ...movingHandlers(buildMover(f, c)),
      ...directoryHandlers({
        agents: c.registry,
        directory: c.directory,
        resolver: n.resolver,
        discover: search,
        recent,
        cardOf: (aid) => c.ownCards.find(aid)?.objectId,
      }),
      ...cardHandlers({ ...c, agents: c.registry, localAid }),
      ...catalogHandlers({ catalog }),
      ...callHandlers({
        fetch: (request, signal) => fetchWhole(c.caller, clock, request, signal),
        localAid,
      }),
      ...traceHandlers(c),
      ...accessHandlers({
        access: c.accessLists,
        callers: c.callers,
        decide: (called, caller) => c.access.decide(called, caller),
        publicClients: c.exposures.clientsOf,
        labels: () => c.addressBook.get().aliases,
        requireAgent,
      }),
      ...accessRequestHandlers({
        requests: c.accessRequests,
        chat: c.chat,
        labels: () => c.addressBook.get().aliases,
        isKnown: c.isKnown,
      }),
      ...tunnelHandlers({ tunnels: c.tunnels, inbound: c.tunnelInbound, localAid }),
      ...originHandlers({ origins: c.origins, localAid }),
      ...exposureHandlers({
        ...c,
        serviceOf: (aid) => c.boundService(requireAgent(aid)),
        nameOf: (aid) => profileNames([aid])[0]?.name,
      }),
      ...pushHandlers(c),
      ...mcpHostHandlers(() =>
        mcpHosts({ platform: process.platform, home: homeDirectory(), environment: process.env }),
      ),
      ...hubHandlers({ hub, localAid }),
      ...panelHandlers({
        logins: c.panel.logins,
        login: () => c.panel.login(),
        isApiToken: (text) => check.isToken(text),
      }),
      ...remoteAdminHandlers({ remoteAdmin: c.remoteAdmin, access: c.accessLists }),
      ...eventHandlers({ log: c.eventLog, waits: c.eventWaits, requireAgent }),
      ...nodeEventHandlers({ events: c.nodeEvents }),
      ...mailHandlers({ notes: c.notes, waits: c.eventWaits }),
      ...chatHandlers({ chat: c.chat, waits: c.eventWaits, repeats }),
      ...groupHandlers({ groups: c.groups, waits: c.eventWaits, repeats }),
      ...fileOfferHandlers({ offers: c.fileOffers, taker: c.offerTaker }),
      ...objectHandlers({ objects: c.objects, holders: c.holders, getter: c.objectGetter, requireAgent }),
    }),
    {
      record: heartbeat,
      localAid,
      tunnelAid: (id) => c.tunnels.list().find((tunnel) => tunnel.id === id)?.localAid,
    },
  );
  const tracked = counted.map(
    (operation): BoundOperation => ({
      declaration: operation.declaration,
      run: (input, context) => f.requests.run(() => operation.run(input, context)),
    }),
  );
  const own = addLabels(tracked, (result) => c.addressBook.labelsIn(result));
  const tools = new ToolTable({
    operations: own,
    pending: pendingCounters,
    parseAid: agent,
    onlyAgent: () => onlyLocalAid(local),
  });
  const channel: AskChannel = async (request, signal) => {
    const { channelReplies } = await import('../surfaces/mcp/channel.ts');
    return channelReplies(c.channel, () => c.addressBook.get().aliases)(request, signal);
  };
  const rest = new RestServer(
    { apiAddr: config.api_addr, requireLocalToken: config.require_local_token, version: VERSION },
    {
      operations: [...own, ...bind({ toolCall }, toolHandlers({ tools }))],
      streams: bindStreams(servedStreams, {
        ...eventStreamHandlers({
          streams: c.eventStreams,
          nodeStreams: c.nodeEventStreams,
          requireAgent,
          onFollowed: (aid) => c.leases.follow(aid),
        }),
        ...objectStreamHandlers({
          objects: c.objects,
          remote: c.remoteObjects,
          clock,
          nodeAid: node.aid,
          requireAgent,
          heartbeat,
        }),
        ...fileOfferStreamHandlers({ offers: c.fileOffers, taker: c.offerTaker, clock: f.clock }),
        ...gatewayHandlers({ caller: c.caller, nodeAid: node.aid, agent, requireLocal: requireAgent }),
        ...panelPageHandlers(new PanelFiles((name) => readPackageFile(`dist/panel/${name}`))),
        ...mcpHandlers({ version: VERSION }, { tools, channel, clock, log: log.child('mcp') }),
        ...hubStreamHandlers(VERSION, { hub, clock, log: log.child('hub'), localAid }),
        ...viaHandlers({ caller: c.adminCaller, nodeAid: node.aid, agent, requireLocal: requireAgent }),
      }),
      token,
      parseAid: agent,
      proofKey: f.dataDir.proofKey,
      sessions: c.panel.logins,
      isServiceConnection: (socket) => c.serviceSockets.isOurs(socket),
      metrics: reports.metrics(),
      clock,
      log: log.child('rest'),
    },
  );
  return { rest, tools, operations: own, channel };
}
