/** Requests and responses between nodes of an in-memory network with its own clock. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { type Address, formatAddress } from '../../../../src/foundation/address.ts';
import { networkTag, nodeId } from '../../../../src/network/records/node-address.ts';
import { type Datagram, decodeDatagram, encodeDatagram } from '../../../../src/network/records/rpc/messages.ts';
import { Rpc, type RpcDependencies, type RpcRequest } from '../../../../src/network/records/rpc/rpc.ts';
import type { UdpSocket } from '../../../../src/network/transport/udp-socket.ts';
import { TestClock } from '../../../support/test-clock.ts';

const TAG = networkTag('test');
const COMMAND = 9;

/** Sockets in memory. A datagram arrives immediately. */
class MemoryNetwork {
  readonly clock = new TestClock();
  readonly sockets = new Map<string, MemorySocket>();
  /** Every sent datagram with its sender and receiver. */
  readonly log: { readonly from: Address; readonly to: Address; readonly bytes: Uint8Array }[] = [];
  #port = 5000;

  freePort(): number {
    return this.#port++;
  }

  /** All datagrams to an address. */
  sentTo(to: Address): Datagram[] {
    return this.log
      .filter((one) => formatAddress(one.to) === formatAddress(to))
      .map(({ bytes }) => decodeDatagram(bytes, TAG) ?? assert.fail());
  }

  node(host: string, overrides: Partial<RpcDependencies> = {}): TestNode {
    return new TestNode(this, host, overrides);
  }
}

class MemorySocket extends EventEmitter implements UdpSocket {
  readonly #network: MemoryNetwork;
  #address: Address | null = null;
  isBroken = false;

  constructor(network: MemoryNetwork) {
    super();
    this.#network = network;
  }

  bind(port: number, host: string): void {
    this.#address = { host, port: port || this.#network.freePort() };
    this.#network.sockets.set(formatAddress(this.#address), this);
  }

  address(): Address | null {
    return this.#address;
  }

  async close(): Promise<void> {
    if (this.#address !== null) this.#network.sockets.delete(formatAddress(this.#address));
  }

  trySend(bytes: Uint8Array, port: number, host: string): void {
    if (this.isBroken) throw new Error('The network is unreachable.');
    const from = this.#address ?? assert.fail();
    this.#network.log.push({ from, to: { host, port }, bytes });
    this.#network.sockets.get(`${host}:${port}`)?.emit('message', bytes, from);
  }

  async send(bytes: Uint8Array, port: number, host: string): Promise<boolean> {
    this.trySend(bytes, port, host);
    return true;
  }
}

class TestNode {
  readonly rpc: Rpc;
  readonly requests: RpcRequest[] = [];
  readonly strangers: Address[] = [];
  readonly nodes: Address[] = [];
  readonly known = new Set<string>();
  /** The id of this node; null while it is in no routing table. */
  id: Uint8Array | null = null;
  answers = true;

  constructor(network: MemoryNetwork, host: string, overrides: Partial<RpcDependencies>) {
    this.rpc = new Rpc(
      { host, port: 0, tag: TAG },
      {
        world: {
          clock: network.clock,
          createSocket: () => new MemorySocket(network),
          randomBytes: (length) => new Uint8Array(length).fill(host.length),
          random: () => 0,
        },
        admits: () => true,
        queue: (_from, work) => work(),
        onDatagram: () => {},
        knows: (from) => this.known.has(formatAddress(from)),
        onStranger: (from) => this.strangers.push(from),
        onNode: (address) => this.nodes.push({ host: address.host, port: address.port }),
        mayBeOneMachine: () => false,
        ownIdFor: () => this.id,
        near: () => [{ host: '203.0.113.1', port: 1 }],
        onRequest: (request) => {
          this.requests.push(request);
          if (this.answers) request.reply(Uint8Array.of(1, 2));
        },
        ...overrides,
      },
    );
    this.rpc.start();
  }

  get address(): Address {
    return this.rpc.serverSocket.address() ?? assert.fail();
  }

  get clientAddress(): Address {
    return this.rpc.clientSocket.address() ?? assert.fail();
  }

  /** Enters the routing tables. */
  join(): void {
    this.id = nodeId(this.address);
  }

  ask(to: Address, token: Uint8Array | null = null) {
    return this.rpc.request(to, { command: COMMAND, token }, { retry: false });
  }

  /** Receives a datagram at its server socket. */
  receive(datagram: Datagram, from: Address): void {
    this.rpc.serverSocket.emit('message', encodeDatagram(datagram, TAG), from);
  }
}

function requestFrom(from: Address | null, to: Address, command: number, internal: boolean): Datagram {
  return {
    ...{ kind: 'request', requestId: 7, to, id: from && nodeId(from), token: null },
    ...{ internal, command, target: null, value: null },
  };
}

test('a response has a token and the observed address of the requester', async () => {
  const network = new MemoryNetwork();
  const [asker, other] = [network.node('10.0.0.1'), network.node('10.0.0.2')];
  const answer = await asker.rpc.request(
    other.address,
    { command: COMMAND, target: new Uint8Array(32).fill(3), value: Uint8Array.of(9) },
    { retry: false },
  );
  assert.deepEqual(Buffer.from(answer?.value ?? []), Buffer.of(1, 2));
  assert.deepEqual(answer?.to, asker.clientAddress);
  assert.deepEqual(answer?.from, { ...other.address, id: null });
  const [request = assert.fail()] = other.requests;
  assert.deepEqual(
    [request.command, request.token, request.from],
    [COMMAND, null, { ...asker.clientAddress, id: null }],
  );
  assert.deepEqual(Buffer.from(request.value ?? []), Buffer.of(9));
  assert.deepEqual(Buffer.from(request.target ?? []), Buffer.alloc(32, 3));
  assert.equal(network.clock.timers, 0);
});

test('a token is valid at the node that issued it, for the same host, for ten minutes', async () => {
  const network = new MemoryNetwork();
  const [asker, other, third] = [network.node('10.0.0.1'), network.node('10.0.0.2'), network.node('10.0.0.33')];
  const token = (await asker.ask(other.address))?.token ?? assert.fail();
  assert.equal((await asker.ask(other.address, token))?.error, 0);
  assert.ok(other.requests.at(-1)?.token);
  assert.equal((await third.ask(other.address, token))?.error, 2, 'another host');
  assert.equal((await asker.ask(third.address, token))?.error, 2, 'another node');
  network.clock.advance(299_000);
  assert.equal((await asker.ask(other.address, token))?.error, 0);
  network.clock.advance(301_000);
  const refusal = await asker.ask(other.address, token);
  assert.equal(refusal?.error, 2);
  assert.equal((await asker.ask(other.address, refusal?.token))?.error, 0, 'a refusal has a new token');
});

test('a retryable request is sent four times, one second apart; any other request once', async () => {
  const network = new MemoryNetwork();
  const asker = network.node('10.0.0.1');
  const unreachable = { host: '10.0.0.9', port: 1234 };
  for (const [retry, times] of [
    [true, 4],
    [false, 1],
  ] as const) {
    network.log.length = 0;
    const asked = asker.rpc.request(unreachable, { command: COMMAND }, { retry });
    await network.clock.run(1000 * times - 1);
    assert.equal(network.sentTo(unreachable).length, times);
    assert.equal(asker.rpc.requestsInFlight, 1);
    await network.clock.run(1);
    assert.equal(await asked, null);
    assert.equal(new Set(network.sentTo(unreachable).map(({ requestId }) => requestId)).size, 1);
  }
});

test('on another network, requests in flight are sent again immediately, with all their time', async () => {
  const network = new MemoryNetwork();
  const asker = network.node('10.0.0.1');
  const unreachable = { host: '10.0.0.9', port: 1234 };
  const asked = asker.rpc.request(unreachable, { command: COMMAND }, { retry: false });
  await network.clock.run(900);
  asker.rpc.resend();
  assert.equal(network.sentTo(unreachable).length, 2);
  await network.clock.run(999);
  assert.equal(asker.rpc.requestsInFlight, 1);
  await network.clock.run(1);
  assert.equal(await asked, null);
  assert.equal(network.sentTo(unreachable).length, 2);
});

test('beyond 400 requests in flight, further requests are queued', async () => {
  const network = new MemoryNetwork();
  const asker = network.node('10.0.0.1');
  const unreachable = { host: '10.0.0.9', port: 1234 };
  const asked = Array.from({ length: 450 }, () => asker.ask(unreachable));
  assert.equal(network.log.length, 400);
  await network.clock.run(1000);
  assert.equal(network.log.length, 450);
  await network.clock.run(1000);
  assert.ok((await Promise.all(asked)).every((answer) => answer === null));
  assert.equal(new Set(network.sentTo(unreachable).map(({ requestId }) => requestId)).size, 450);
});

test('a response is accepted only from the destination host of the request, or from this machine', async () => {
  for (const isSame of [false, true]) {
    const network = new MemoryNetwork();
    const asker = network.node('10.0.0.1', { mayBeOneMachine: () => isSame });
    const asked = asker.ask({ host: '10.0.0.9', port: 1234 });
    const [request = assert.fail()] = network.sentTo({ host: '10.0.0.9', port: 1234 });
    const answer: Datagram = {
      ...{ kind: 'answer', requestId: request.requestId, to: asker.clientAddress, id: null, token: null },
      ...{ nodes: [], error: 0, value: null },
    };
    asker.receive(answer, { host: '10.0.0.8', port: 1234 });
    asker.receive({ ...answer, requestId: request.requestId + 1 }, { host: '10.0.0.9', port: 1234 });
    await network.clock.run(1000);
    assert.equal((await asked) !== null, isSame);
  }
});

test('a node in routing tables sends requests from its server socket with its id, and others record it', async () => {
  const network = new MemoryNetwork();
  const [asker, other] = [network.node('10.0.0.1'), network.node('10.0.0.2')];
  for (const node of [asker, other]) node.join();
  const answer = await asker.ask(other.address);
  assert.deepEqual(Buffer.from(answer?.from.id ?? []), Buffer.from(nodeId(other.address)));
  assert.deepEqual(answer?.to, asker.address);
  assert.deepEqual(asker.nodes, [other.address]);
  assert.deepEqual([other.strangers, other.nodes], [[asker.address], []], 'a request does not prove an address');
  assert.equal(other.requests[0]?.from.id, null);
  other.known.add(formatAddress(asker.address));
  await asker.ask(other.address);
  assert.deepEqual(other.nodes, [asker.address]);
  assert.ok(other.requests[1]?.from.id);
});

test('an id that does not match the address is ignored', async () => {
  const network = new MemoryNetwork();
  const [asker, other] = [network.node('10.0.0.1'), network.node('10.0.0.2')];
  asker.id = nodeId({ host: '10.0.0.3', port: 1 });
  other.id = asker.id;
  other.known.add(formatAddress(asker.address));
  const answer = await asker.ask(other.address);
  assert.equal(answer?.from.id, null);
  assert.deepEqual([asker.nodes, other.nodes, other.requests[0]?.from.id], [[], [], null]);
});

test('a peer that sees this node at another address receives the id of that address', async () => {
  const network = new MemoryNetwork();
  const seen = nodeId({ host: '192.168.1.1', port: 1 });
  const own = nodeId({ host: '10.0.0.1', port: 1 });
  const node = network.node('10.0.0.1', { ownIdFor: (host) => (host === '10.0.0.2' ? seen : own) });
  for (const [host, id] of [
    ['10.0.0.2', seen],
    ['10.0.0.3', own],
  ] as const) {
    const other = network.node(host);
    await node.ask(other.address);
    await other.ask(node.address);
    const [request, answer] = [...network.sentTo(other.address), ...network.sentTo(other.clientAddress)];
    for (const datagram of [request, answer]) assert.deepEqual(Buffer.from(datagram?.id ?? []), Buffer.from(id));
  }
});

test('ping and find-node requests are answered. Other DHT commands get an error', () => {
  const network = new MemoryNetwork();
  const node = network.node('10.0.0.1');
  const from = { host: '10.0.0.2', port: 1111 };
  const target = new Uint8Array(32);
  const answers = (command: number, withTarget: boolean): Datagram[] => {
    network.log.length = 0;
    node.receive({ ...requestFrom(null, node.address, command, true), ...(withTarget ? { target } : {}) }, from);
    return network.sentTo(from);
  };
  const [ping] = answers(0, true);
  assert.ok(ping?.kind === 'answer' && ping.error === 0 && ping.nodes.length === 0 && ping.token === null);
  const [near] = answers(2, true);
  assert.ok(near?.kind === 'answer' && near.error === 0);
  assert.deepEqual(near.nodes, [{ host: '203.0.113.1', port: 1 }]);
  assert.deepEqual(answers(2, false), []);
  for (const command of [1, 3, 4, 5, 300]) {
    const [refusal] = answers(command, true);
    assert.ok(refusal?.kind === 'answer' && refusal.error === 1 && refusal.nodes.length === 0, String(command));
  }
  assert.deepEqual(node.requests, [], 'none of these is a command of the record network');
});

test('a client socket answers no requests', async () => {
  const network = new MemoryNetwork();
  const [node, other] = [network.node('10.0.0.1'), network.node('10.0.0.2')];
  const socket = new MemorySocket(network);
  node.rpc.receive(socket, 'answers');
  socket.bind(0, '10.0.0.1');
  const address = socket.address() ?? assert.fail();
  assert.deepEqual((await node.rpc.ping(other.address, { retry: false, socket }))?.to, address);
  const asked = other.ask(address);
  await network.clock.run(1000);
  assert.equal(await asked, null);
  assert.deepEqual(node.requests, []);
});

test('datagrams that are not admitted, too long, or from port 0 are dropped', () => {
  const network = new MemoryNetwork();
  let admitted = true;
  const node = network.node('10.0.0.1', { admits: () => admitted });
  const from = { host: '10.0.0.2', port: 1111 };
  const request = requestFrom(null, node.address, COMMAND, false);
  node.receive(request, { ...from, port: 0 });
  node.receive({ ...request, value: new Uint8Array(1232) }, from);
  admitted = false;
  node.receive(request, from);
  assert.equal(node.requests.length, 0);
  admitted = true;
  node.receive(request, from);
  assert.equal(node.requests.length, 1);
});

test('a request to an address that is unreachable or not IPv4 has no response', async () => {
  const network = new MemoryNetwork();
  const node = network.node('10.0.0.1');
  assert.equal(await node.ask({ host: 'example.org', port: 1 }), null);
  const { clientSocket } = node.rpc;
  assert.ok(clientSocket instanceof MemorySocket);
  clientSocket.isBroken = true;
  assert.equal(await node.ask({ host: '10.0.0.9', port: 1 }), null);
  assert.equal(network.clock.timers, 0);
});

test('if the network fails, thousands of queued requests end without a response', async () => {
  const network = new MemoryNetwork();
  const node = network.node('10.0.0.1');
  const asked = Array.from({ length: 20_000 }, () => node.ask({ host: '10.0.0.9', port: 1 }));
  const { clientSocket } = node.rpc;
  assert.ok(clientSocket instanceof MemorySocket);
  clientSocket.isBroken = true;
  await network.clock.run(1000);
  assert.ok((await Promise.all(asked)).every((answer) => answer === null));
  assert.deepEqual([network.log.length, network.clock.timers], [400, 0]);
});

test('a stop settles all requests in flight and in the queue, and clears all timers', async () => {
  const network = new MemoryNetwork();
  const node = network.node('10.0.0.1');
  const asked = Array.from({ length: 410 }, () => node.ask({ host: '10.0.0.9', port: 1 }));
  await node.rpc.stop();
  assert.ok((await Promise.all(asked)).every((answer) => answer === null));
  assert.equal(await node.ask({ host: '10.0.0.9', port: 1 }), null);
  assert.equal(network.log.length, 400);
  assert.deepEqual([network.clock.timers, network.sockets.size], [0, 0]);
});
