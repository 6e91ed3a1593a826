/** How a node comes to know its address, and whether strangers reach it. */
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
  /** Whether its datagrams reach our server socket, and from a strange port our client socket. */
  reaches?: boolean;
  strangePortReaches?: boolean;
  /** How it sees us when we write to it. */
  sees?: Address;
  silent?: boolean;
}

/** Peers that see and reach us as the test says. */
class StubEngine {
  readonly id = new Uint8Array(32);
  readonly address: Address;
  readonly peers: Peer[];
  onObserved: (reporter: Address, seen: Address) => void = () => {};
  onServerAnswer: (from: Address) => void = () => {};
  ownAddress: Address | null = null;
  clientCount = 0;

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

  nodes(): ReturnType<MembershipDependencies['engine']['nodes']> {
    return this.table().map((peer) => ({ node: { ...peer, id: nodeId(peer) }, firstSeen: 0, lastSeen: 0 }));
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
  /** Searches fail in a way that nobody expects. */
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

  /** The address that it took for its own; none where it stands in no table. */
  own(): string | undefined {
    return this.engine.ownAddress?.host;
  }

  /** Lets everything happen that waits for nothing but itself. */
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

test('who is reached by enough peers joins the tables at once', async () => {
  const world = new World(publicPeers(5, { reaches: true }));
  await world.start();
  assert.equal(world.own(), PUBLIC);
  const { ready, natType, inRoutingTables, observed } = world.membership.reachability();
  assert.deepEqual({ ready, natType, inRoutingTables }, { ready: true, natType: 1, inRoutingTables: true });
  assert.deepEqual(observed, [{ host: PUBLIC, port: LISTEN.port }]);
});

test('who is not reached stays out, and asks again later', async () => {
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

test('an address counts when enough distinct peers report it, fewer where there are fewer', async () => {
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
  assert.equal(outvoted.own(), PUBLIC, 'many addresses of one block have one voice');
  const minority = new World([...publicPeers(3, lies), ...publicPeers(8, { reaches: true }).slice(3)]);
  await minority.start();
  assert.equal(minority.own(), PUBLIC, 'three who were the first to agree');
  const alone = new World(publicPeers(1, { reaches: true }));
  await alone.start();
  assert.equal(alone.own(), PUBLIC);
});

test('tells the kinds of NAT apart', async () => {
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

test('the first node of a network takes the address that it listens on', async () => {
  const world = new World([], { host: '192.168.1.5', port: 4121 });
  await world.start();
  assert.equal(world.own(), '192.168.1.5');
  assert.equal(world.membership.reachability().ready, false);
});

test('where it listens everywhere, it takes the address of this machine that a neighbour uses', async () => {
  const world = new World();
  await world.start();
  assert.equal(world.own(), undefined);
  world.membership.onUnasked(unasked('192.0.2.77'));
  world.membership.onUnasked(unasked('192.168.1.5', 9));
  await world.settle();
  assert.equal(world.own(), undefined, 'not an address of this machine, not the port');
  world.membership.onUnasked(unasked('127.0.0.1'));
  await world.settle();
  assert.equal(world.own(), '127.0.0.1');
  world.membership.onUnasked(unasked('192.168.1.5'));
  await world.settle();
  assert.equal(world.own(), '192.168.1.5', 'one that reaches further');
  world.membership.onUnasked(unasked('127.0.0.1'));
  await world.settle();
  assert.equal(world.own(), '192.168.1.5');
});

test('a first node that strangers reach at the address which its owner states takes that', async () => {
  const world = new World([], { host: '0.0.0.0', port: LISTEN.port }, PUBLIC);
  await world.start();
  world.membership.onUnasked(unasked('203.0.113.99'));
  await world.settle();
  assert.equal(world.own(), undefined, 'not whatever a stranger says');
  world.membership.onUnasked(unasked(PUBLIC));
  await world.settle();
  assert.equal(world.own(), PUBLIC);
});

test('in a public network, an address that only the LAN knows makes nobody reachable', async () => {
  const world = new World(publicPeers(4));
  world.peers.push({ host: '192.168.1.9', port: 4121, reaches: true, sees: { host: '192.168.1.5', port: 4121 } });
  await world.start();
  world.membership.onUnasked(unasked('192.168.1.5'));
  await world.settle();
  assert.equal(world.own(), undefined);
});

test('where nobody answers it comes back, less and less often', async () => {
  const world = new World(publicPeers(2, { silent: true, reaches: true }));
  await world.start();
  assert.equal(world.searches, 0);
  for (const peer of world.peers) peer.silent = false;
  await world.advance(500);
  assert.ok(world.searches > 0);
  assert.equal(world.own(), PUBLIC);
});

test('a node that others use is ready, though its routing table is empty', async () => {
  const world = new World();
  await world.start();
  assert.equal(world.membership.reachability().ready, false);
  world.engine.clientCount = 2;
  world.membership.onTableChange();
  await world.advance(50);
  const { ready, peers, clients } = world.reports.at(-1) ?? world.membership.reachability();
  assert.deepEqual({ ready, peers, clients }, { ready: true, peers: 0, clients: 2 });
});

test('the pauses between attempts double, and begin anew with a new contact', async () => {
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

test('an attempt that fails in an unforeseen way is not the last one', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  world.broken = true;
  await world.start();
  assert.equal(world.own(), undefined);
  world.broken = false;
  await world.advance(30_000);
  assert.equal(world.own(), PUBLIC);
});

test('a search that fails once an address was taken is told, and ends nothing', async () => {
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
  assert.equal(world.warnings.length, 1, 'nothing is told after the end');
});

test('a node that is found is asked at once', async () => {
  const world = new World();
  await world.start();
  const found: Peer = { host: '192.168.1.9', port: 4121, reaches: true, sees: { host: '192.168.1.5', port: 4121 } };
  world.peers.push(found);
  world.membership.addContact(found);
  await world.settle();
  assert.equal(world.own(), '192.168.1.5');
  assert.equal(world.membership.reachability().ready, true);
});

test('a port that the router leads here from now on is tried at once', async () => {
  const world = new World(publicPeers(4));
  await world.start();
  assert.equal(world.own(), undefined);
  world.membership.onMapped();
  await world.settle();
  assert.equal(world.own(), undefined, 'a router that says so is not enough');
  for (const peer of world.peers) peer.reaches = true;
  world.membership.onMapped();
  await world.settle();
  assert.equal(world.own(), PUBLIC, 'without a pause');
});

test('a new network is another address', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  await world.start();
  for (const peer of world.peers) peer.sees = { host: '203.0.114.99', port: 1 };
  world.membership.onNetworkChange();
  assert.equal(world.own(), undefined, 'it leaves the tables first');
  await world.advance(20);
  assert.equal(world.own(), '203.0.114.99');
  for (const peer of world.peers) peer.reaches = false;
  world.membership.onNetworkChange();
  await world.advance(20);
  assert.equal(world.own(), undefined);
});

test('tells what changes, and nothing after it has stopped', async () => {
  const world = new World(publicPeers(4, { reaches: true }));
  await world.start();
  const last = world.reports.at(-1);
  assert.deepEqual(last, world.membership.reachability());
  assert.equal(new Set(world.reports.map((r) => JSON.stringify(r))).size, world.reports.length, 'no report twice');
  world.membership.stop();
  const { length } = world.reports;
  world.membership.onNetworkChange();
  world.membership.onTableChange();
  await world.settle();
  assert.equal(world.reports.length, length);
  assert.equal(world.clock.timers, 0);
});
