/** How a node learns its address, and whether strangers can reach it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { BootstrapNodes } from '../../../src/network/records/bootstrap-nodes.ts';
import { Membership, type MembershipDependencies } from '../../../src/network/records/membership.ts';
import { decodeProbeRequest } from '../../../src/network/records/messages.ts';
import { nodeId } from '../../../src/network/records/node-address.ts';
import { ObservedAddresses } from '../../../src/network/records/own-hosts.ts';
import type { RpcAnswer, RpcMessage } from '../../../src/network/records/rpc/rpc.ts';
import type { Reachability } from '../../../src/network/records/types.ts';
import { TestClock } from '../../support/test-clock.ts';

const LISTEN: Address = { host: '0.0.0.0', port: 4121 };
const OWN_HOSTS = ['127.0.0.1', '192.168.1.5'];
const PUBLIC = '203.0.114.7';

interface Peer extends Address {
  /** Whether its datagrams reach the server socket of this node and, from a different port, its client socket. */
  reaches?: boolean;
  strangePortReaches?: boolean;
  /** The address at which it sees this node. */
  sees?: Address;
  silent?: boolean;
}

/** Peers that see and reach this node as the test configures. */
class StubEngine {
  readonly id = new Uint8Array(32);
  readonly address: Address;
  readonly peers: Peer[];
  onObserved: (reporter: Address, seen: Address) => void = () => {};
  onServerAnswer: (from: Address) => void = () => {};
  ownAddress: Address | null = null;
  clientCount = 0;
  /** Hosts of neighbors that are missing in the table. */
  readonly missing = new Set<string>();

  constructor(address: Address, peers: Peer[]) {
    this.address = address;
    this.peers = peers;
  }

  get peerCount(): number {
    return this.table().length;
  }

  table(): Peer[] {
    return this.peers.filter((peer) => peer.silent !== true);
  }

  isOwn(): boolean {
    return false;
  }

  lacksNeighbor(nodes: readonly Address[]): boolean {
    return nodes.some(({ host }) => this.missing.has(host));
  }

  nodes(): ReturnType<MembershipDependencies['engine']['nodes']> {
    return this.table().map((peer) => ({ node: { ...peer, id: nodeId(peer) }, firstSeen: 0, lastSeen: 0 }));
  }

  hasNode({ host, port }: Address): boolean {
    return this.table().some((peer) => peer.host === host && peer.port === port);
  }

  async join(address: Address): Promise<void> {
    this.ownAddress = address;
  }

  leave(): void {
    this.ownAddress = null;
  }

  answer(address: Address): Peer | undefined {
    const peer = this.table().find(({ host, port }) => host === address.host && port === address.port);
    if (peer?.sees !== undefined) this.onObserved(peer, peer.sees);
    return peer;
  }

  async request(to: Address, message: RpcMessage): Promise<RpcAnswer | null> {
    const probe = decodeProbeRequest(message.value ?? new Uint8Array());
    const peer = this.answer(to);
    if (probe === null || peer === undefined) return null;
    if (!(probe.otherSocket ? peer.strangePortReaches : peer.reaches)) return null;
    if (!probe.otherSocket) this.onServerAnswer(peer);
    const seen = peer.sees?.host ?? PUBLIC;
    return { from: { ...to, id: null }, to: { host: seen, port: probe.port }, token: null, error: 0, value: null };
  }
}

class World {
  readonly clock = new TestClock();
  readonly peers: Peer[] = [];
  readonly membership: Membership;
  readonly reports: Reachability[] = [];
  readonly warnings: string[] = [];
  readonly engine: StubEngine;
  searches = 0;
  greeted = 0;
  /** Neighbors that a contact names. */
  readonly named = new Map<string, readonly Address[]>();
  /** Lookups fail with an unexpected error. */
  broken = false;

  constructor(bootstrap: readonly Peer[] = [], listen: Address = LISTEN, statedHost = '') {
    this.peers.push(...bootstrap);
    const engine = new StubEngine(listen, this.peers);
    this.engine = engine;
    this.membership = new Membership(
      { minObservedPeers: 3, statedHost },
      {
        engine,
        clock: this.clock,
        random: () => 0,
        log: { ...silentLog, warn: (_fields, message) => void this.warnings.push(message) },
        bootstrapNodes: new BootstrapNodes(bootstrap, this.clock),
        observed: new ObservedAddresses({ clock: this.clock }),
        isOwnHost: (host) => OWN_HOSTS.includes(host),
        searches: {
          greet: async (contact) => {
            this.greeted++;
            return engine.answer(contact) !== undefined;
          },
          prove: async () => 'silent',
          neighborsFrom: async (contact) => this.named.get(contact.host) ?? null,
          forWrite: () => {
            if (this.broken) throw new Error('broken');
            this.searches++;
            for (const peer of engine.table()) engine.answer(peer);
            return { finished: Promise.resolve() };
          },
        },
      },
    );
    engine.onObserved = (reporter, seen) => this.membership.onObserved(reporter, seen);
    engine.onServerAnswer = (from) => this.membership.onServerAnswer(from);
    this.membership.onReachability((r) => this.reports.push(r));
  }

  /** The address that the node uses as its own; undefined while it is in no routing table. */
  own(): string | undefined {
    return this.engine.ownAddress?.host;
  }

  /** Runs all pending work that does not need a timer. */
  async settle(): Promise<void> {
    for (let i = 0; i < 30; i++) {
      this.clock.advance(0);
      await setImmediate();
    }
  }

  async start(): Promise<void> {
    this.membership.start();
    await this.settle();
  }

  async advance(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.settle();
  }
}

function publicPeers(count: number, details: Partial<Peer> = {}): Peer[] {
  const sees = { host: PUBLIC, port: 50_000 };
  return Array.from({ length: count }, (_, i) => ({ host: `198.${52 + i}.100.1`, port: 4121, sees, ...details }));
}

function unasked(host: string, port = LISTEN.port): Address {
  return { host, port };
}

test('a node that enough peers reach joins the routing tables immediately', async () => {
  const world = new World(publicPeers(5, { reaches: true }));
  await world.start();
  assert.equal(world.own(), PUBLIC);
  const { ready, natType, inRoutingTables, observed } = world.membership.reachability();
  assert.deepEqual({ ready, natType, inRoutingTables }, { ready: true, natType: 1, inRoutingTables: true });
  assert.deepEqual(observed, [{ host: PUBLIC, port: LISTEN.port }]);
});

test('an unreachable node does not join the routing tables, and checks again later', async () => {
  const world = new World(publicPeers(5));
  for (const peer of world.peers.slice(0, 2)) peer.reaches = true;
  await world.start();
  assert.equal(world.own(), undefined);
  assert.equal(world.membership.reachability().inRoutingTables, false);
  for (const peer of world.peers) peer.reaches = true;
  await world.advance(14_999);
  assert.equal(world.own(), undefined);
  await world.advance(1);
  assert.equal(world.own(), PUBLIC);
});

test('contacts that are out of date do not count as peers that do not get through', async () => {
  const outdated = publicPeers(4, { silent: true }).slice(1);
  const world = new World([...publicPeers(1, { reaches: true }), ...outdated]);
  await world.start();
  await world.advance(15_000);
  assert.equal(world.own(), PUBLIC);
});

test('an address is accepted when enough distinct peers report it. A small network needs fewer', async () => {
  const divided = new World(publicPeers(4, { reaches: true }));
  for (const [i, peer] of divided.peers.entries()) peer.sees = { host: `203.0.114.${i % 2}`, port: 1 };
  await divided.start();
  assert.equal(divided.own(), undefined);
  assert.deepEqual(divided.membership.reachability().observed, []);
  const liar = new World(publicPeers(4, { reaches: true }));
  for (const peer of liar.peers.slice(0, 1)) peer.sees = { host: '8.8.8.8', port: 1 };
  await liar.start();
  assert.equal(liar.own(), PUBLIC);
  const crowd = publicPeers(5, { reaches: true });
  const lies = { reaches: true, sees: { host: '8.8.8.8', port: 1 } };
  const oneBlock = Array.from({ length: 3 }, (_, i) => ({ host: `198.40.0.${i + 1}`, port: 4121, ...lies }));
  const outvoted = new World([...oneBlock, ...crowd]);
  await outvoted.start();
  assert.equal(outvoted.own(), PUBLIC, 'many addresses in one block have one vote');
  const minority = new World([...publicPeers(3, lies), ...publicPeers(8, { reaches: true }).slice(3)]);
  await minority.start();
  assert.equal(minority.own(), PUBLIC, 'the first three that agreed');
  const alone = new World(publicPeers(1, { reaches: true }));
  await alone.start();
  assert.equal(alone.own(), PUBLIC);
});

test('the network is ready before it is known whether strangers reach this node', async () => {
  const world = new World(publicPeers(5));
  world.engine.request = () => new Promise(() => {});
  await world.start();
  assert.equal(world.reports.at(-1)?.ready, true);
});

test('each NAT type is detected', async () => {
  const kinds: [Partial<Peer>, number][] = [
    [{}, 3],
    [{ strangePortReaches: true }, 2],
  ];
  for (const [details, natType] of kinds) {
    const world = new World(publicPeers(4, details));
    await world.start();
    assert.equal(world.membership.reachability().natType, natType);
  }
  const symmetric = new World(publicPeers(4));
  for (const [i, peer] of symmetric.peers.entries()) peer.sees = { host: PUBLIC, port: 50_000 + i };
  await symmetric.start();
  assert.equal(symmetric.membership.reachability().natType, 4);
  const unknown = new World(publicPeers(1));
  await unknown.start();
  assert.equal(unknown.membership.reachability().natType, 0);
});

test('the first node of a network uses the address that it listens on', async () => {
  const world = new World([], { host: '192.168.1.5', port: 4121 });
  await world.start();
  assert.equal(world.own(), '192.168.1.5');
  assert.equal(world.membership.reachability().ready, false);
});

test('a node that listens on all interfaces uses the address that a LAN peer uses for it', async () => {
  const world = new World();
  await world.start();
  assert.equal(world.own(), undefined);
  world.membership.onUnasked(unasked('192.0.2.77'));
  world.membership.onUnasked(unasked('192.168.1.5', 9));
  await world.settle();
  assert.equal(world.own(), undefined, 'neither an address of another machine nor another port');
  world.membership.onUnasked(unasked('127.0.0.1'));
  await world.settle();
  assert.equal(world.own(), '127.0.0.1');
  world.membership.onUnasked(unasked('192.168.1.5'));
  await world.settle();
  assert.equal(world.own(), '192.168.1.5', 'an address with a wider scope');
  world.membership.onUnasked(unasked('127.0.0.1'));
  await world.settle();
  assert.equal(world.own(), '192.168.1.5');
});

test('a first node that strangers reach at the address its owner configured uses that address', async () => {
  const world = new World([], { host: '0.0.0.0', port: LISTEN.port }, PUBLIC);
  await world.start();
  world.membership.onUnasked(unasked('203.0.113.99'));
  await world.settle();
  assert.equal(world.own(), undefined, 'the claim of a single stranger is not enough');
  world.membership.onUnasked(unasked(PUBLIC));
  await world.settle();
  assert.equal(world.own(), PUBLIC);
});

test('in a public network, an address that only LAN peers see does not make a node reachable', async () => {
  const world = new World(publicPeers(4));
  world.peers.push({ host: '192.168.1.9', port: 4121, reaches: true, sees: { host: '192.168.1.5', port: 4121 } });
  await world.start();
  world.membership.onUnasked(unasked('192.168.1.5'));
  await world.settle();
  assert.equal(world.own(), undefined);
});

test('if no node answers, joining is retried with growing delays', async () => {
  const world = new World(publicPeers(2, { silent: true, reaches: true }));
  await world.start();
  assert.equal(world.searches, 0);
  for (const peer of world.peers) peer.silent = false;
  await world.advance(500);
  assert.ok(world.searches > 0);
  assert.equal(world.own(), PUBLIC);
});

test('a node joins again by a contact that names missing neighbors, as after a partition', async () => {
  const world = new World(publicPeers(3, { reaches: true }));
  await world.start();
  const [contact = assert.fail(), neighbor = assert.fail()] = world.engine.peers.splice(0, 2);
  world.engine.missing.add(neighbor.host);
  // Its announcements end.
  for (const ms of [50, 500, 5_000]) await world.advance(ms);
  world.searches = 0;
  await world.advance(60_000);
  assert.equal(world.searches, 0, 'it does not answer');
  world.named.set(contact.host, []);
  await world.advance(60_000);
  assert.equal(world.searches, 0, 'it is in the same network');
  world.named.set(contact.host, [neighbor]);
  await world.advance(60_000);
  assert.equal(world.searches, 2);
});

test('a node with clients is ready, even with an empty routing table', async () => {
  const world = new World();
  await world.start();
  assert.equal(world.membership.reachability().ready, false);
  world.engine.clientCount = 2;
  world.membership.onTableChange();
  await world.advance(50);
  const { ready, peers, clients } = world.reports.at(-1) ?? world.membership.reachability();
  assert.deepEqual({ ready, peers, clients }, { ready: true, peers: 0, clients: 2 });
});

test('the retry delay doubles, and starts over with a new contact', async () => {
  const world = new World(publicPeers(1, { silent: true }));
  await world.start();
  // At most 5 s in the first ten minutes, and 30 s later.
  const early = [500, 1000, 2000, 4000, ...Array(118).fill(5000)];
  assert.ok(early.reduce((sum, ms) => sum + ms, 0) < 600_000);
  for (const [i, pause] of [...early, 5000, 30_000, 30_000].entries()) {
    await world.advance(pause - 1);
    assert.equal(world.greeted, i + 1);
    await world.advance(1);
    assert.equal(world.greeted, i + 2);
  }
  const before = world.greeted;
  world.membership.addContact({ host: '192.168.1.9', port: 4121 });
  await world.settle();
  assert.equal(world.greeted, before + 2);
  await world.advance(500);
  assert.equal(world.greeted, before + 4);
});

test('after an unexpected error, joining is retried', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  world.broken = true;
  await world.start();
  assert.equal(world.own(), undefined);
  world.broken = false;
  await world.advance(30_000);
  assert.equal(world.own(), PUBLIC);
});

test('if a lookup fails after an address was accepted, the node logs it and continues', async () => {
  const world = new World();
  await world.start();
  world.broken = true;
  world.membership.onUnasked(unasked('127.0.0.1'));
  await world.settle();
  assert.equal(world.own(), '127.0.0.1');
  assert.deepEqual(world.warnings, ['joining the network failed']);
  world.membership.onUnasked(unasked('192.168.1.5'));
  world.membership.stop();
  await world.settle();
  assert.equal(world.warnings.length, 1, 'nothing is logged after the stop');
});

test('a discovered node is queried immediately', async () => {
  const world = new World();
  await world.start();
  const found: Peer = { host: '192.168.1.9', port: 4121, reaches: true, sees: { host: '192.168.1.5', port: 4121 } };
  world.peers.push(found);
  world.membership.addContact(found);
  await world.settle();
  assert.equal(world.own(), '192.168.1.5');
  assert.equal(world.membership.reachability().ready, true);
});

test('a new port mapping is checked immediately', async () => {
  const world = new World(publicPeers(4));
  await world.start();
  assert.equal(world.own(), undefined);
  world.membership.onMapped();
  await world.settle();
  assert.equal(world.own(), undefined, 'the word of the router is not enough');
  for (const peer of world.peers) peer.reaches = true;
  world.membership.onMapped();
  await world.settle();
  assert.equal(world.own(), PUBLIC, 'without a delay');
});

test('after a network change the node detects its new address', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  await world.start();
  for (const peer of world.peers) peer.sees = { host: '203.0.114.99', port: 1 };
  world.membership.onNetworkChange();
  assert.equal(world.own(), undefined, 'it leaves the routing tables first');
  await world.advance(20);
  assert.equal(world.own(), '203.0.114.99');
  for (const peer of world.peers) peer.reaches = false;
  world.membership.onNetworkChange();
  await world.advance(20);
  assert.equal(world.own(), undefined);
});

test('every change is reported once, and none after the stop', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  await world.start();
  const last = world.reports.at(-1);
  assert.deepEqual(last, world.membership.reachability());
  assert.equal(new Set(world.reports.map((r) => JSON.stringify(r))).size, world.reports.length, 'no duplicate report');
  world.membership.stop();
  const { length } = world.reports;
  world.membership.onNetworkChange();
  world.membership.onTableChange();
  await world.settle();
  assert.equal(world.reports.length, length);
  assert.equal(world.clock.timers, 0);
});
