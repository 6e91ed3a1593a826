/** HTTP calls, both incoming and outgoing. */
import { randomBytes } from 'node:crypto';
import { CallServer } from '../../capabilities/calls/call-server.ts';
import { callerKey } from '../../capabilities/calls/caller-proof.ts';
import { CallSigner } from '../../capabilities/calls/evidence/call-signer.ts';
import { EvidenceCheck } from '../../capabilities/calls/evidence/evidence-check.ts';
import { HttpCaller } from '../../capabilities/calls/http-caller.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';

/** Cached keys of services. */
const MAX_KEYS = 1024;

export function buildCalls(
  { life, clock, log, node, seen, delegations }: Foundation,
  { registry, evidence, boundService, onDeleted, serviceSockets }: Agents,
  { access, callers, keepChecked }: Access,
  links: AgentLinks,
) {
  const keys = new LruCache<Aid, Uint8Array>({ maxEntries: MAX_KEYS });
  const keyOf = (aid: Aid): Uint8Array => {
    const key = keys.get(aid) ?? callerKey(node.key.seed, aid);
    keys.set(aid, key);
    return key;
  };
  const callServer = new CallServer({
    links,
    clock,
    log,
    callers,
    callerKey: keyOf,
    evidence: new EvidenceCheck(clock, delegations, (aid) => seen.newest(aid)),
    watch: (socket) => serviceSockets.watch(socket),
    authorize: (request) => access.authorize(request),
    isNamed: ({ caller, called }) => access.isNamed(called, caller),
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...service, scheme: service.scheme === 'https' ? 'https' : 'http' };
    },
  });
  life.add('answering', callServer);
  keepChecked(callServer);
  onDeleted((aid) => callServer.drop(aid));
  const signer = new CallSigner(clock, (aid) => (evidence.isOn(aid) ? registry.identity(aid) : null), randomBytes);
  const caller = new HttpCaller(links, clock, { signer });
  const adminCaller = new HttpCaller(links, clock, { purpose: 'admin' });
  life.defer(() => caller.stop());
  life.defer(() => adminCaller.stop());
  return { callServer, caller, adminCaller, callerKey: keyOf };
}
