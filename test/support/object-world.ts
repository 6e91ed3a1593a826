/** Nodes with objects over in-memory links. */
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Callers } from '../../src/capabilities/access/callers.ts';
import { HttpCaller } from '../../src/capabilities/calls/http-caller.ts';
import { Holders, ObjectGetter } from '../../src/capabilities/objects/object-getter.ts';
import { ObjectServer } from '../../src/capabilities/objects/object-server.ts';
import { ObjectService } from '../../src/capabilities/objects/object-service.ts';
import { OfferedFiles } from '../../src/capabilities/objects/offered-files.ts';
import type { ObjectQuota } from '../../src/capabilities/objects/quota.ts';
import { RemoteObjects } from '../../src/capabilities/objects/remote-objects.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { ObjectRepository } from '../../src/foundation/store/objects.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { AccessRequest } from '../../src/network/links/types.ts';
import { type LinkNode, LinkWorld } from './link-world.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Pseudo-random bytes that are the same in every run. */
export function someBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
}

/** An object service without a network. */
export async function objectService(
  t: TestContext,
  options: { quota?: Partial<ObjectQuota>; clock?: Clock; filesRoot?: string } = {},
) {
  const directory = temporaryDirectory(t);
  const filesRoot = options.filesRoot ?? join(directory, 'files');
  if (filesRoot !== '') mkdirSync(filesRoot, { recursive: true });
  const store = Store.open(join(directory, 'svcd.db'), MIGRATIONS);
  const repository = new ObjectRepository(store);
  const clock = options.clock ?? systemClock;
  const settings = { filesRoot, ...(options.quota === undefined ? {} : { quota: options.quota }) };
  const objects = new ObjectService(settings, repository, clock, silentLog);
  await objects.start();
  t.after(() => objects.stop());
  return { directory, filesRoot, store, repository, objects };
}

export interface ObjectNode extends Awaited<ReturnType<typeof objectService>> {
  readonly node: LinkNode;
  readonly aid: Aid;
  /** The objects of its offers. */
  readonly offers: Map<string, string>;
  readonly offered: OfferedFiles;
  readonly server: ObjectServer;
  readonly remote: RemoteObjects;
  readonly holders: Holders;
  readonly getter: ObjectGetter;
}

export class ObjectWorld {
  readonly links: LinkWorld;
  readonly #t: TestContext;
  readonly #clock: Clock;
  /** Recorded callers of all nodes. */
  readonly callers: Callers;
  /** Called when a link opens, and for each request. */
  access: (request: AccessRequest) => void | Promise<void> = () => {};

  constructor(t: TestContext, clock: Clock = systemClock) {
    this.#t = t;
    this.#clock = clock;
    this.callers = new Callers(clock, () => false);
    this.links = new LinkWorld(clock);
    t.after(() => this.links[Symbol.asyncDispose]());
  }

  async node(options: { quota?: Partial<ObjectQuota> } = {}): Promise<ObjectNode> {
    const clock = this.#clock;
    const node = await this.links.node();
    const { aid } = node.host();
    const own = await objectService(this.#t, { ...options, clock });
    const authorize = (request: AccessRequest): void | Promise<void> => this.access(request);
    node.authorize = authorize;
    const offers = new Map<string, string>();
    const offered = new OfferedFiles(own.objects, (_aid, id) => offers.get(id) ?? null);
    const server = new ObjectServer({
      isNamed: () => false,
      links: node.links,
      objects: own.objects,
      offered,
      clock,
      log: silentLog,
      authorize,
      callers: this.callers,
    });
    await server.start();
    const caller = new HttpCaller(node.links, clock, { purpose: 'object' });
    this.#t.after(async () => {
      caller.stop();
      await server.stop();
    });
    const remote = new RemoteObjects({ caller });
    const holders = new Holders(own.repository, remote, own.objects, clock);
    const getter = new ObjectGetter(own.objects, holders, remote, clock);
    return { ...own, node, aid, offers, offered, server, remote, holders, getter };
  }
}
