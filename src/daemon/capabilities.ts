/** What users ask for: agents, what they publish, who may call them, calls, tunnels, events. */
import type { Duplex } from 'node:stream';
import { AccessControl } from '../capabilities/access/access-control.ts';
import { AccessLists } from '../capabilities/access/access-lists.ts';
import { SECRET_COST, secretDerivation } from '../capabilities/access/derivations.ts';
import { AddressBook } from '../capabilities/address-book/address-book.ts';
import { AgentRegistry } from '../capabilities/agents/registry.ts';
import { parseServiceAddress } from '../capabilities/agents/service-address.ts';
import { checkTcp } from '../capabilities/agents/tcp-check.ts';
import { CallServer } from '../capabilities/calls/call-server.ts';
import { HttpCaller } from '../capabilities/calls/http-caller.ts';
import { chooseLocalAid } from '../capabilities/calls/local-aid.ts';
import { Chat } from '../capabilities/chat/chat.ts';
import { Directory } from '../capabilities/directory/directory.ts';
import { EventLog } from '../capabilities/events/event-log.ts';
import { EventStreams } from '../capabilities/events/event-streams.ts';
import { PendingCounters } from '../capabilities/events/pending-counters.ts';
import { Notes } from '../capabilities/notes/notes.ts';
import { Holders } from '../capabilities/objects/holders.ts';
import { ObjectGetter } from '../capabilities/objects/object-getter.ts';
import { ObjectServer } from '../capabilities/objects/object-server.ts';
import { ObjectService } from '../capabilities/objects/object-service.ts';
import { RemoteObjects } from '../capabilities/objects/remote-objects.ts';
import type { RequestObserver } from '../capabilities/remote-admin/admin-session.ts';
import { RemoteAdmin } from '../capabilities/remote-admin/remote-admin.ts';
import { Rooms } from '../capabilities/rooms/rooms.ts';
import { TUNNEL_PURPOSES, TunnelInbound } from '../capabilities/tunnels/inbound.ts';
import { TunnelService } from '../capabilities/tunnels/tunnel-service.ts';
import { type Address, isLoopbackHost } from '../foundation/address.ts';
import { descriptorLimit } from '../foundation/descriptors.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { AccessRepository } from '../foundation/store/access.ts';
import { AgentStore } from '../foundation/store/agents.ts';
import { AuditStore } from '../foundation/store/audit.ts';
import { ChatStore } from '../foundation/store/chat.ts';
import { ChatLog } from '../foundation/store/chat-log.ts';
import { EventStore } from '../foundation/store/events.ts';
import { NoteStore } from '../foundation/store/notes.ts';
import { ObjectRepository } from '../foundation/store/objects.ts';
import { PublicationStore } from '../foundation/store/publications.ts';
import { RoomEntryStore } from '../foundation/store/room-entries.ts';
import { RoomStore } from '../foundation/store/rooms.ts';
import { TunnelStore } from '../foundation/store/tunnels.ts';
import { accessRequestOf } from '../network/links/access-request.ts';
import { AgentLinks } from '../network/links/links.ts';
import type { Foundation } from './foundation.ts';
import type { Life } from './life.ts';
import type { Network } from './network.ts';

export type Capabilities = ReturnType<typeof buildCapabilities>;

/** What the API above gives back to the capabilities, once it is there. */
export interface ApiHooks {
  /** Where it listens; null until it does. */
  address(): Address | null;
  /** Serves it on a link of an administrator, never as local. */
  serveRemoteAdmin(stream: Duplex, observer: RequestObserver): void;
}

export function buildCapabilities(f: Foundation, n: Network, life: Life, api: ApiHooks) {
  const { clock, log, store, node, configuration } = f;
  const { records, resolver, ownAddresses } = n;
  const registry = new AgentRegistry(
    { nodeAid: node.aid },
    {
      agents: new AgentStore(store),
      vault: f.keys,
      clock,
      log,
      checkTcp,
      own: { api: () => api.address(), interfaces: n.interfaces, lookup: n.lookupHost },
    },
  );
  const identity = (aid: Aid) => (aid === node.aid ? node : registry.identity(aid));
  const publications = new PublicationStore(store);
  const directory = new Directory(
    { nodeAid: node.aid, nodeKey: node.key.publicKey },
    {
      network: records,
      publications,
      clock,
      log,
      identity,
      isAlive: (aid) => registry.isAlive(aid),
      serviceOf: (aid) => registry.service(aid),
      addresses: () => ownAddresses.current(),
      onAddresses: (handler) => ownAddresses.onChange(handler),
      autoPublish: () => configuration.current.auto_publish,
      noteDelegation: (aid, issuedAt) => f.seen.note(aid, issuedAt),
      random: Math.random,
      onPublished: (record) => {
        resolver.learn(record);
        notes.published(record);
      },
    },
  );
  const derive = secretDerivation(SECRET_COST);
  const accessLists = new AccessLists({ repository: new AccessRepository(store), clock, derive });
  life.defer(() => accessLists.stop());
  const access = new AccessControl({ lists: accessLists, clock, derive });
  const remoteAdmin = new RemoteAdmin({
    memory: f.meta,
    audit: new AuditStore(store),
    clock,
    log,
    authorize: (request) => access.authorize(request),
    serve: (stream, observer) => api.serveRemoteAdmin(stream, observer),
  });
  life.defer(() => remoteAdmin.stop());
  const links = new AgentLinks({
    pool: n.pool,
    verifier: f.delegations,
    clock,
    log,
    identity,
    locate: (aid, options) => resolver.locate(aid, options),
    authorize: async (request) => {
      await (request.purpose === 'admin' ? remoteAdmin : access).authorize(request);
      tunnelInbound.checkRoom(request);
    },
    noteDelegation: (aid, issuedAt) => f.seen.note(aid, issuedAt),
    newestDelegation: (aid) => f.seen.newest(aid),
  });

  const boundService = (aid: Aid) => {
    const text = registry.service(aid);
    if (text === '') return null;
    const service = parseServiceAddress(text);
    // The API may have moved to this address after the service was bound to it.
    return isLoopbackHost(service.host) && service.port === api.address()?.port ? null : service;
  };
  const callServer = new CallServer({
    links,
    clock,
    log,
    authorize: (request) => access.authorize(request),
    serviceOf: (aid) => {
      const service = boundService(aid);
      if (service === null) return null;
      return { ...service, scheme: service.scheme === 'https' ? 'https' : 'http' };
    },
  });
  const caller = new HttpCaller({ links, clock });
  const adminCaller = new HttpCaller({ links, clock, purpose: 'admin' });
  life.defer(() => caller.stop());
  life.defer(() => adminCaller.stop());
  links.accept('admin', (link) => remoteAdmin.accept(link));
  const localAgents = {
    has: (aid: Aid) => registry.identity(aid) !== null,
    first: (limit: number) => registry.list(limit).agents.map((agent) => agent.aid),
  };
  const localAid = (named: Aid | undefined): Aid => chooseLocalAid(localAgents, node.aid, named);

  const tunnelLog = log.child('tunnels');
  // The other descriptors are for calls, for the API, and for files.
  const maxTunnelConnections = Math.floor(descriptorLimit() / 2);
  const tunnelInbound = new TunnelInbound({
    clock,
    log: tunnelLog,
    serviceOf: boundService,
    maxConnections: () => maxTunnelConnections,
    authorize: (link) => access.authorize(accessRequestOf(link)),
  });
  life.defer(() => tunnelInbound.stop());
  for (const purpose of TUNNEL_PURPOSES) links.accept(purpose, (link) => tunnelInbound.accept(link));
  const tunnels = new TunnelService({
    clock,
    log: tunnelLog,
    links,
    memory: new TunnelStore(store),
    relayDisabled: () => configuration.current.disable_relay,
  });

  const eventLog = new EventLog({ store: new EventStore(store), clock, log });
  const notes: Notes = new Notes({
    store: new NoteStore(store),
    network: records,
    links,
    vault: f.keys,
    directory: {
      published: (aid, type) => publications.publications(aid).find((row) => row.type === type) ?? null,
      publishRecord: (aid, type, payload, ttl) => directory.publishRecord(aid, type, payload, ttl),
    },
    delegations: f.delegations,
    records: f.verifier,
    events: eventLog,
    clock,
    log,
    identity: (aid) => registry.identity(aid),
    agents: (cursor, limit) => {
      const page = registry.list(limit, cursor);
      return { aids: page.agents.map((agent) => agent.aid), next: page.nextCursor };
    },
    newestDelegation: (aid) => f.seen.newest(aid),
    random: Math.random,
  });
  const chat = new Chat({
    store: new ChatStore(store),
    entries: new ChatLog(store),
    links,
    objects: {
      put: (aid, path) => objects.put(aid, { path }),
      has: (aid, objectId) => objects.stat(aid, objectId),
    },
    events: eventLog,
    network: records,
    clock,
    log,
    identity: (aid) => registry.identity(aid),
    random: Math.random,
  });
  const pending = new PendingCounters([
    () => new Map([...notes.pending()].map(([aid, mailbox]) => [aid, { mailbox }])),
    () => new Map([...chat.pending()].map(([aid, c]) => [aid, { chat_invites: c.invites, chat_unread: c.unread }])),
  ]);
  const eventStreams = new EventStreams({ log: eventLog, clock, pending: (aid) => pending.view(aid ?? undefined) });
  const addressBook = new AddressBook(f.meta);

  const objectStore = new ObjectRepository(store);
  const objects = new ObjectService({ filesRoot: f.config.files_root }, { repository: objectStore, clock, log });
  const objectCaller = new HttpCaller({ links, clock, purpose: 'object' });
  life.defer(() => objectCaller.stop());
  const remoteObjects = new RemoteObjects({ caller: objectCaller });
  const holders = new Holders({ repository: objectStore, remote: remoteObjects, objects, clock });
  const objectGetter = new ObjectGetter({ objects, holders, remote: remoteObjects, clock });
  const objectServer = new ObjectServer({
    links,
    objects,
    clock,
    log,
    authorize: (request) => access.authorize(request),
  });

  const rooms = new Rooms({
    rooms: new RoomStore(store),
    entries: new RoomEntryStore(store),
    links,
    notes,
    objects: { has: (aid, objectId) => objects.stat(aid, objectId) !== null },
    delegations: f.delegations,
    events: eventLog,
    clock,
    log,
    identity: (aid) => registry.identity(aid),
    random: Math.random,
  });

  life.defer(
    accessLists.onChange((subject) => {
      if (subject === 'node') return void remoteAdmin.recheck();
      void tunnelInbound.recheck(subject);
      void objectServer.recheck(subject);
      return void callServer.recheck(subject);
    }),
  );
  registry.onChange((change) => {
    void directory
      .agentChanged(change)
      .catch((error: unknown) => log.warn({ aid: change.aid, err: error }, 'a change of an agent was not published'));
    notes.agentChanged(change);
    chat.agentChanged(change);
    if (change.kind !== 'deleted') return;
    accessLists.removeSubject(change.aid);
    callServer.drop(change.aid);
    tunnelInbound.drop(change.aid);
    objects.forgetAgent(change.aid);
    eventStreams.endStreamsOf(change.aid);
    eventLog.forget(change.aid);
    rooms.forget(change.aid);
    void tunnels.forget(change.aid);
  });
  life.defer(
    configuration.onChange((changed, current) => {
      if (changed.has('log_level')) log.setLevel(current.log_level);
      if (changed.has('log_format')) log.setFormat(current.log_format);
      if (changed.has('auto_publish')) directory.applyAutoPublish();
    }),
  );
  return {
    registry,
    directory,
    accessLists,
    access,
    links,
    callServer,
    caller,
    adminCaller,
    remoteAdmin,
    localAid,
    tunnelInbound,
    tunnels,
    eventLog,
    eventStreams,
    pending,
    notes,
    chat,
    rooms,
    addressBook,
    objects,
    objectServer,
    remoteObjects,
    holders,
    objectGetter,
  };
}
