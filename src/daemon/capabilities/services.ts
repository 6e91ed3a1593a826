/** Services of local and remote agents: calls, tunnels, local addresses, and push notifications. */
import { randomBytes } from 'node:crypto';
import { CallServer } from '../../capabilities/calls/call-server.ts';
import { callerKey } from '../../capabilities/calls/caller-proof.ts';
import { CallSigner } from '../../capabilities/calls/evidence/call-signer.ts';
import { EvidenceCheck } from '../../capabilities/calls/evidence/evidence-check.ts';
import { HttpCaller } from '../../capabilities/calls/http-caller.ts';
import { Origins } from '../../capabilities/origins/origins.ts';
import { createWebhookPoster } from '../../capabilities/push/webhook-post.ts';
import { WebhookUrls } from '../../capabilities/push/webhook-urls.ts';
import { Webhooks } from '../../capabilities/push/webhooks.ts';
import { TunnelInbound } from '../../capabilities/tunnels/inbound.ts';
import { TunnelService } from '../../capabilities/tunnels/tunnel-service.ts';
import { isLoopbackHost } from '../../foundation/address.ts';
import { descriptorLimit } from '../../foundation/descriptors.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { canonicalIp } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { OriginStore } from '../../foundation/store/origins.ts';
import { TunnelStore } from '../../foundation/store/tunnels.ts';
import { WebhookUrlStore } from '../../foundation/store/webhook-urls.ts';
import { WebhookStore } from '../../foundation/store/webhooks.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import { type AskOwner, accessRequestOf, TUNNEL_PURPOSES } from '../../network/links/types.ts';
import { originServers } from '../../surfaces/origin/origin-server.ts';
import { webhookUrlServers } from '../../surfaces/push/webhook-url-server.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { buildCards } from './cards.ts';
import type { buildTraces } from './traces.ts';

// Push notifications: webhooks of local programs, and webhook URLs for remote agents.

export function buildPush(
  { life, clock, log, parts, store, secrets, meta }: Foundation,
  { interfaces, records: network }: Network,
  { boundService, serviceSockets }: Agents,
  { access }: Access,
  links: AgentLinks,
) {
  const webhookUrls = new WebhookUrls({
    store: new WebhookUrlStore(store, secrets),
    links,
    memory: meta,
    serve: webhookUrlServers({ log: log.child('webhook-urls') }),
    network,
    ...parts,
    secrets,
    randomBytes,
    newId,
    decide: (called, caller) => access.decide(called, caller),
    isNamed: (called, caller) => access.isNamed(called, caller),
    isServedHere: (called) => {
      const service = boundService(called);
      if (service === null) return null;
      const ip = canonicalIp(service.host);
      return isLoopbackHost(service.host) || interfaces().some((own) => canonicalIp(own) === ip);
    },
  });
  /** Ports on 127.0.0.1 where svcd itself serves programs. */
  const ownPorts: (() => readonly (number | null)[])[] = [() => [webhookUrls.port]];
  const webhooks = new Webhooks({
    store: new WebhookStore(store, secrets),
    links,
    post: createWebhookPoster(
      clock,
      (socket) => serviceSockets.watch(socket),
      (ip, port) => isLoopbackHost(ip) && ownPorts.some((ports) => ports().includes(port)),
    ),
    network,
    ...parts,
    randomBytes,
    isDenied: (localAid, remoteAid) => access.isDenied(localAid, remoteAid),
  });
  life.add('acting', webhookUrls);
  life.add('acting', webhooks);
  return { webhookUrls, webhooks, ownPorts };
}

// Local addresses of remote agents.

/** The request to the owner of a remote agent when a local address opens. */
const LOCAL_ADDRESS_ASK = {
  kind: 'call',
  asked: 'calls from a local address',
  tool: null,
  note: '',
  waitS: 0,
} as const;

export function buildOrigins(
  { life, clock, log: parent, store, secrets }: Foundation,
  { onDeleted }: Agents,
  { caller }: ReturnType<typeof buildCalls>,
  { tunnels }: ReturnType<typeof buildTunnels>,
  { cardAdmission, remoteCards }: ReturnType<typeof buildCards>,
  { webhooks, ownPorts }: ReturnType<typeof buildPush>,
  askOwner: AskOwner,
) {
  const log = parent.child('origins');
  const origins = new Origins({
    clock,
    log,
    memory: new OriginStore(store, secrets),
    serve: originServers({
      caller,
      clock,
      log,
      cards: cardAdmission,
      signedCard: async (remote, local, signal) => {
        const { kind, card } = await remoteCards.get(remote, local, signal);
        return kind === 'a2a' ? card : null;
      },
      push: webhooks,
      carry: (socket, target, refused) => tunnels.carry(socket, target, refused),
    }),
    probe: async (request) => {
      try {
        await tunnels.probe(request);
      } catch (error) {
        // The agent is reachable and accepts calls, which is enough for most programs.
        if (error instanceof SvcError && error.code === 'calls_only') return;
        const isRefused = error instanceof SvcError && error.code === 'access_denied';
        if (!isRefused || request.accessToken !== undefined) throw error;
        await askOwner(request.localAid, request.remoteAid, LOCAL_ADDRESS_ASK);
      }
    },
  });
  life.add('acting', origins);
  ownPorts.push(() => origins.list().map(({ url }) => Number(new URL(url).port)));
  onDeleted((aid) => detach(origins.closeAllOf(aid)));
  return { origins };
}

// Tunnels: TCP connections to services of local and remote agents.

export function buildTunnels(
  { life, clock, log: parent, store, secrets }: Foundation,
  { boundService, onDeleted, serviceSockets }: Agents,
  { access, permissions, callers, keepChecked }: Access,
  links: AgentLinks,
  { lanes }: Network,
  askOwner: AskOwner,
) {
  const log = parent.child('tunnels');
  // Half of the file descriptors. The rest is for calls, the API and files.
  const maxConnections = Math.floor(descriptorLimit() / 2);
  const tunnelInbound = new TunnelInbound({
    clock,
    log,
    bulk: lanes,
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...(service.tunnels ?? service), takesTunnels: service.tunnels !== null };
    },
    connect: serviceSockets.connect,
    ...permissions,
    maxConnections: () => maxConnections,
    enter: async (link) => (await access.enter(accessRequestOf(link))).begin ?? (() => () => {}),
    entered: (link) => callers.entered(accessRequestOf(link)),
  });
  life.defer(() => tunnelInbound.stop());
  for (const purpose of TUNNEL_PURPOSES) {
    links.accept(
      purpose,
      (link) => tunnelInbound.accept(link),
      (request) => tunnelInbound.check(request),
    );
  }
  keepChecked(tunnelInbound);
  const tunnels = new TunnelService({
    clock,
    log,
    links,
    bulk: lanes,
    memory: new TunnelStore(store, secrets),
    askOwner,
  });
  life.add('acting', tunnels);
  onDeleted((aid) => {
    tunnelInbound.drop(aid);
    detach(tunnels.forget(aid));
  });
  return { tunnelInbound, tunnels };
}

// HTTP calls, both incoming and outgoing.

/** Cached keys of services. */
const MAX_KEYS = 1024;

export function buildCalls(
  { life, clock, parts, node, seen, delegations }: Foundation,
  { registry, evidence, boundService, onDeleted, serviceSockets }: Agents,
  { access, permissions, callers, keepChecked }: Access,
  links: AgentLinks,
  askOwner: AskOwner,
  { traces }: ReturnType<typeof buildTraces>,
) {
  const keys = new LruCache<Aid, Uint8Array>({ maxEntries: MAX_KEYS });
  const keyOf = (aid: Aid): Uint8Array => {
    const known = keys.get(aid);
    if (known !== undefined) return known;
    const key = callerKey(node.key.seed, aid);
    keys.set(aid, key);
    return key;
  };
  const callServer = new CallServer({
    ...parts,
    links,
    callers,
    traces,
    callerKey: keyOf,
    evidence: new EvidenceCheck(clock, delegations, (aid) => seen.newest(aid)),
    watch: (socket) => serviceSockets.watch(socket),
    ...permissions,
    enter: (request, asked) => access.enter(request, asked),
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...service, scheme: service.scheme === 'https' ? 'https' : 'http' };
    },
  });
  life.add('answering', callServer);
  keepChecked(callServer);
  onDeleted((aid) => callServer.drop(aid));
  const signer = new CallSigner(clock, (aid) => (evidence.isOn(aid) ? registry.identity(aid) : null), randomBytes);
  const caller = new HttpCaller(links, clock, { signer, askOwner, traces });
  const foundCaller = new HttpCaller(links, clock, { signer, traces, isUnasked: true });
  const adminCaller = new HttpCaller(links, clock, { purpose: 'admin' });
  life.defer(() => caller.stop());
  life.defer(() => foundCaller.stop());
  life.defer(() => adminCaller.stop());
  return { callServer, caller, foundCaller, adminCaller, callerKey: keyOf };
}
