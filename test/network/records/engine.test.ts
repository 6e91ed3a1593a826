/** Events that the engine emits for the modules built on it. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { type Clock, systemClock } from '../../../src/foundation/clock.ts';
import { DhtEngine, SILENT_MS, SILENT_REQUESTS } from '../../../src/network/records/engine.ts';
import { compareDistance, networkTag, nodeId } from '../../../src/network/records/node-address.ts';
import { FAILURES_TO_DROP, PeerHealth } from '../../../src/network/records/peer-health.ts';
import { machine, type RpcWorld } from '../../../src/network/records/rpc/world.ts';
import type { UdpSocket } from '../../../src/network/transport/udp-socket.ts';
import { eventually } from '../../support/eventually.ts';
import { hostileNode } from '../../support/hostile-dht.ts';
import { TestClock } from '../../support/test-clock.ts';

const COMMAND = 9;

async function start(
  t: TestContext,
  host = '127.0.0.1',
  ownHosts: readonly string[] = [],
  clock: Clock = systemClock,
  world: RpcWorld = machine(),
) {
  const health = new PeerHealth({ clock });
  const engine = new DhtEngine(
    { host, port: 0, tag: networkTag('test') },
    {
      clock,
      health,
      isOwnHost: (one) => ownHosts.includes(one),
      sourceTo: () => null,
      world,
    },
  );
  const heard: string[] = [];
  engine.events.request.add(({ command }) => heard.push(`request ${command}`));
  engine.events.unasked.add((to) => heard.push(`to ${to.host}:${to.port}`));
  engine.events.serverAnswer.add((from) => heard.push(`answer of ${from.port}`));
  engine.events.node.add((node) => heard.push(`node ${node.port}`));
  engine.events.tableChange.add(() => heard.push('table'));
  await engine.start();
  t.after(() => engine.stop());
  return { engine, heard, health };
}

test('the engine reports a request at the server socket with the local address that it was sent to', async (t) => {
  const { engine, heard } = await start(t);
  const other = await hostileNode(t, () => {});
  engine.events.request.add((request) => request.reply(Buffer.from('yes')));
  const reply = await other.request(engine.address, { command: COMMAND });
  assert.deepEqual(reply?.value, Buffer.from('yes'));
  const { host, port } = engine.address;
  assert.deepEqual(heard.slice(0, 2), [`to ${host}:${port}`, `request ${COMMAND}`]);
});

test('the engine reports a node that enters the routing table, with the change of the table', async (t) => {
  const { engine, heard } = await start(t);
  const other = await hostileNode(t, (request) => request.reply(null));
  await engine.request(other.address, { command: COMMAND });
  await eventually('the node is in the table', () => heard.length >= 2);
  assert.deepEqual(heard, [`node ${other.address.port}`, 'table']);
  assert.equal(engine.peerCount, 1);
});

test('the engine reports a response that arrives at the server socket', async (t) => {
  const { engine, heard } = await start(t);
  const other = await hostileNode(t, (request) => request.reply(null));
  await engine.request(other.address, { command: COMMAND });
  assert.ok(
    !heard.includes(`answer of ${other.address.port}`),
    'a node in no routing table sends from the client socket',
  );
  await engine.join(engine.address);
  await engine.request(other.address, { command: COMMAND });
  engine.leave();
  const later = await hostileNode(t, (request) => request.reply(null));
  await engine.request(later.address, { command: COMMAND });
  assert.ok(
    !heard.includes(`answer of ${later.address.port}`),
    'a node that left the routing tables sends from the client socket',
  );
});

/** An address of this machine with a property that many addresses have. */
function addressThat(isRight: (address: Address) => boolean): Address {
  for (let i = 0; ; i++) {
    const address = { host: `127.0.1.${i % 250}`, port: 1024 + Math.floor(i / 250) };
    if (isRight(address)) return address;
  }
}

test('a node lacks a neighbor that is closer than the closest of its table, unless it is silent', async (t) => {
  const clock = new TestClock();
  const { engine, health } = await start(t, '127.0.0.1', [], clock);
  const other = await hostileNode(t, (request) => request.reply(null));
  assert.ok(!engine.lacksNeighbor([], 1));
  assert.ok(!engine.lacksNeighbor([engine.address], 1), 'itself');
  assert.ok(engine.lacksNeighbor([other.address], 1), 'the table is empty');
  await engine.request(other.address, { command: COMMAND });
  assert.ok(!engine.lacksNeighbor([other.address], 1), 'it is in the table');
  const isCloser = (node: Address): boolean => compareDistance(engine.id, nodeId(node), nodeId(other.address)) < 0;
  const [closest, farthest] = [addressThat(isCloser), addressThat((node) => !isCloser(node))];
  assert.ok(!engine.lacksNeighbor([farthest], 1));
  assert.ok(engine.lacksNeighbor([farthest], 2), 'there is only one closer node');
  assert.ok(engine.lacksNeighbor([farthest, closest], 1));
  for (let i = 0; i < FAILURES_TO_DROP; i++) health.failed(closest);
  assert.ok(!engine.lacksNeighbor([closest], 1));
});

test('a node recognizes its own addresses', async (t) => {
  const { engine } = await start(t);
  const { host, port } = engine.address;
  assert.equal(engine.isOwn({ host, port }), true);
  assert.equal(engine.isOwn({ host, port: port + 1 }), false);
  assert.equal(engine.isOwn({ host: '203.0.113.1', port }), false);
  await engine.join({ host: '203.0.113.1', port });
  assert.equal(engine.isOwn({ host: '203.0.113.1', port }), true);
  const { engine: everywhere } = await start(t, '0.0.0.0', ['192.168.1.5']);
  assert.equal(everywhere.isOwn({ host: '192.168.1.5', port: everywhere.address.port }), true);
  assert.equal(everywhere.isOwn({ host: '192.168.1.6', port: everywhere.address.port }), false);
});

test('a node with a permanently blocked client port sends from a new one', async (t) => {
  const clock = new TestClock();
  const { engine } = await start(t, '127.0.0.1', [], clock);
  const blocked = new Set<number>();
  let last = 0;
  const other = await hostileNode(t, (request) => {
    last = request.from.port;
    if (!blocked.has(last)) request.reply(Buffer.from('yes'));
  });
  const changes: string[] = [];
  engine.events.portChange.add(() => changes.push('port'));
  assert.ok(await engine.request(other.address, { command: COMMAND }));
  blocked.add(last);
  const silent = Array.from({ length: SILENT_REQUESTS }, () => engine.request(other.address, { command: COMMAND }));
  clock.advance(SILENT_MS);
  assert.ok((await Promise.all(silent)).every((reply) => reply === null));
  assert.deepEqual(changes, ['port']);
  assert.ok(await engine.request(other.address, { command: COMMAND }));
  assert.ok(!blocked.has(last));
});

test('an answer ends a silence: earlier silent requests and their time do not count', async (t) => {
  const clock = new TestClock();
  const { engine, health } = await start(t, '127.0.0.1', [], clock);
  let answers = true;
  const other = await hostileNode(t, (request) => (answers ? request.reply(Buffer.from('yes')) : undefined));
  let changes = 0;
  engine.events.portChange.add(() => changes++);
  const ask = () => engine.request(other.address, { command: COMMAND });
  const fallSilent = async (requests: number, ms: number): Promise<void> => {
    answers = false;
    const silent = Array.from({ length: requests }, ask);
    clock.advance(ms);
    await Promise.all(silent);
    answers = true;
  };
  assert.ok(await ask());
  assert.notEqual(health.rttMsOf(other.address), null);
  await fallSilent(SILENT_REQUESTS - 1, SILENT_MS);
  assert.ok(health.failures(other.address) > 0);
  assert.ok(await ask());
  assert.equal(health.failures(other.address), 0);
  await fallSilent(SILENT_REQUESTS - 1, SILENT_MS);
  assert.equal(changes, 0, 'too few requests');
  assert.ok(await ask());
  await fallSilent(SILENT_REQUESTS, SILENT_MS - 1);
  assert.equal(changes, 0, 'too short');
});

for (const code of ['EADDRNOTAVAIL', 'EMFILE'])
  test(`a node that cannot open a new port (${code}) keeps the present one, and changes it later`, async (t) => {
    const clock = new TestClock();
    const { sockets, world, state } = failingSockets();
    const { engine } = await start(t, '127.0.0.1', [], clock, world);
    let answers = true;
    const other = await hostileNode(t, (request) => (answers ? request.reply(Buffer.from('yes')) : undefined));
    let changes = 0;
    engine.events.portChange.add(() => changes++);
    const fallSilent = async (): Promise<void> => {
      answers = false;
      const silent = Array.from({ length: SILENT_REQUESTS }, () => engine.request(other.address, { command: COMMAND }));
      clock.advance(SILENT_MS);
      await Promise.all(silent);
      answers = true;
    };
    assert.ok(await engine.request(other.address, { command: COMMAND }));
    const { length: atStart } = sockets;

    state.code = code;
    await fallSilent();
    assert.deepEqual([sockets.length, changes], [atStart + 1, 0], 'it tried');
    assert.equal(await sockets.at(-1)?.close(), undefined, 'the socket that could not be bound is closed');
    assert.ok(await engine.request(other.address, { command: COMMAND }), 'the present port still works');
    assert.throws(() => engine.openPort(4), { code: 'connect_failed' });

    state.code = null;
    await fallSilent();
    assert.equal(changes, 1);
    assert.ok(await engine.request(other.address, { command: COMMAND }));
  });

/** Sockets of this machine that cannot be bound while there is a code. */
function failingSockets() {
  const state: { code: string | null } = { code: null };
  const sockets: UdpSocket[] = [];
  const real = machine();
  const createSocket = (): UdpSocket => {
    const socket = real.createSocket();
    const bind = socket.bind.bind(socket);
    socket.bind = (port, host) => {
      if (state.code !== null) throw Object.assign(new Error(state.code), { code: state.code });
      bind(port, host);
    };
    sockets.push(socket);
    return socket;
  };
  return { state, sockets, world: { ...real, createSocket } };
}
