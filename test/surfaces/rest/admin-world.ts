/** A remotely administered node, and the API of the administering node, with links in memory between them. */
import type { TestContext } from 'node:test';
import { AccessControl } from '../../../src/capabilities/access/access-control.ts';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { RemoteAdmin } from '../../../src/capabilities/remote-admin/remote-admin.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Aid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { AuditStore } from '../../../src/foundation/store/audit.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { remoteAdminHandlers } from '../../../src/operations/handlers/remote-admin.ts';
import { type BoundOperation, bind, type CallContext } from '../../../src/operations/operation.ts';
import { remoteAdminOperations, remoteAdminStreams } from '../../../src/operations/remote-admin.ts';
import { viaHandlers } from '../../../src/surfaces/rest/gateway.ts';
import { cheapDerivation } from '../../support/cheap-scrypt.ts';
import { type LinkNode, LinkWorld } from '../../support/link-world.ts';
import { type Answer, type Ask, startWorld, testOperations, type World } from './support.ts';

const { ping, secret, change, wait } = testOperations;

export interface AdminWorld {
  readonly near: LinkNode;
  readonly far: LinkNode;
  /** The nodes' own identities, and an agent on the near one. */
  readonly nearAid: Aid;
  readonly farAid: Aid;
  readonly agentAid: Aid;
  readonly lists: AccessLists;
  readonly audit: AuditStore;
  readonly remoteAdmin: RemoteAdmin;
  /** The API of the near node. */
  readonly api: World;
  /** The API of the far node, on its own machine. */
  readonly farApi: World;
  /** Contexts of the remote `wait` operation, and the calls of its `change` operation. */
  readonly waiting: CallContext[];
  readonly changed: string[];
  /** Sends a request to the remote API through the local one. */
  via(method: string, path: string, options?: Ask): Promise<Answer>;
}

export async function adminWorld(t: TestContext, file = ':memory:'): Promise<AdminWorld> {
  const clock = systemClock;
  const links = new LinkWorld(clock);
  const [near, far] = [await links.node(), await links.node()];
  const [nearAid, agentAid, farAid] = [near.host().aid, near.host().aid, far.host().aid];
  const store = Store.open(file, MIGRATIONS);
  const lists = new AccessLists(new AccessRepository(store), clock, cheapDerivation);
  const access = new AccessControl(lists, clock, cheapDerivation);
  const audit = new AuditStore(store);
  const remoteAdmin: RemoteAdmin = new RemoteAdmin({
    memory: new MetaStore(store),
    audit,
    clock,
    log: silentLog,
    isNamed: () => false,
    authorize: (request) => access.authorize(request),
    serve: (stream, observer) => farApi.server.serveRemoteAdmin(stream, observer),
  });
  lists.onChange((subject) => (subject === 'node' ? void remoteAdmin.recheck() : undefined));
  far.authorize = (request) => remoteAdmin.authorize(request);
  far.links.accept('admin', (link) => remoteAdmin.accept(link));

  const waiting: CallContext[] = [];
  const changed: string[] = [];
  const operations: BoundOperation[] = [
    ...bind(
      { ping, secret, change, wait },
      {
        ping: ({ n }, { origin }) => ({ origin, n: n ?? null }),
        secret: () => ({ key: 'value' }),
        change: ({ aid }) => {
          changed.push(aid);
          return {};
        },
        wait: async (_input, context) => {
          waiting.push(context);
          await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve()));
          return {};
        },
      },
    ),
    ...bind(remoteAdminOperations, remoteAdminHandlers({ remoteAdmin, access: lists })),
  ];
  const noHop = { request: refuse, upgrade: refuse };
  const farVia = bindStreams(
    remoteAdminStreams,
    viaHandlers({ caller: noHop, nodeAid: farAid, agent: parseAid, requireLocal: () => {} }),
  );
  const farApi = await startWorld(t, { operations, streams: farVia, token: 'the-far-token' });

  const caller = new HttpCaller(near.links, clock, { purpose: 'admin' });
  const requireLocal = (aid: Aid): void => {
    if (aid !== agentAid) throw new SvcError('not_found');
  };
  const streams = bindStreams(
    remoteAdminStreams,
    viaHandlers({ caller, nodeAid: nearAid, agent: parseAid, requireLocal }),
  );
  const api = await startWorld(t, { streams });
  t.after(async () => {
    caller.stop();
    remoteAdmin.stop();
    lists.stop();
    await links[Symbol.asyncDispose]();
    store.close();
  });
  return {
    near,
    far,
    nearAid,
    farAid,
    agentAid,
    lists,
    audit,
    remoteAdmin,
    api,
    farApi,
    waiting,
    changed,
    via: (method, path, options) => api.request(method, `/via/${farAid}${path}`, options),
  };
}

function refuse(): Promise<never> {
  throw new Error('a remote administrator must not reach a third node');
}
