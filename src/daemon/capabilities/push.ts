/** Push notifications: webhooks of local programs, and webhook URLs for remote agents. */
import { randomBytes } from 'node:crypto';
import { createWebhookPoster } from '../../capabilities/push/webhook-post.ts';
import { WebhookUrls } from '../../capabilities/push/webhook-urls.ts';
import { Webhooks } from '../../capabilities/push/webhooks.ts';
import { isLoopbackHost } from '../../foundation/address.ts';
import { newId } from '../../foundation/ids.ts';
import { canonicalIp } from '../../foundation/ip.ts';
import { WebhookUrlStore } from '../../foundation/store/webhook-urls.ts';
import { WebhookStore } from '../../foundation/store/webhooks.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import { webhookUrlServers } from '../../surfaces/push/webhook-url-server.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';

export function buildPush(
  { life, clock, log, store, meta }: Foundation,
  { interfaces }: Pick<Network, 'interfaces'>,
  { boundService, serviceSockets }: Agents,
  { access }: Access,
  links: AgentLinks,
) {
  const random = Math.random;
  const webhookUrls = new WebhookUrls({
    store: new WebhookUrlStore(store),
    links,
    memory: meta,
    serve: webhookUrlServers({ log: log.child('webhook-urls') }),
    clock,
    log,
    randomBytes,
    random,
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
    store: new WebhookStore(store),
    links,
    post: createWebhookPoster(
      clock,
      (socket) => serviceSockets.watch(socket),
      (ip, port) => isLoopbackHost(ip) && ownPorts.some((ports) => ports().includes(port)),
    ),
    clock,
    log,
    randomBytes,
    random,
    isDenied: (localAid, remoteAid) => access.isDenied(localAid, remoteAid),
  });
  life.add('acting', webhookUrls);
  life.add('acting', webhooks);
  return { webhookUrls, webhooks, ownPorts };
}
