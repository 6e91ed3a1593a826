/** Tunnels between two nodes over the real engine, on a path with delay and loss. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import { join } from '../../../src/capabilities/tunnels/carrier.ts';
import { TunnelInbound } from '../../../src/capabilities/tunnels/inbound.ts';
import { LastingConnection } from '../../../src/capabilities/tunnels/lasting/lasting-connection.ts';
import { WideCaller } from '../../../src/capabilities/tunnels/wide/caller.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { type AgentLocation, TUNNEL_PURPOSES } from '../../../src/network/links/types.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { TestLanes } from '../../support/bulk.ts';
import { eventually } from '../../support/eventually.ts';
import { tcpPair } from '../../support/lasting.ts';
import { NativeNode } from '../../support/link-process.ts';
import { readAll } from '../../support/link-world.ts';
import { LossyPath } from '../../support/lossy-path.ts';
import { TcpServer } from '../../support/tcp.ts';

const CHUNK = Buffer.alloc(64 * 1024, 'lanes');
/** Long enough that many packets are lost. */
const CHUNKS = 64;
/** More than any machine sends before it has a lane. */
const MAX_CHUNKS = 16 * CHUNKS;
const RTT_MS = 40;

const near = new NativeNode(KeyPair.generate(), 0);
const far = new NativeNode(KeyPair.generate(), 0, false);
let connections: WideCaller;
let lanes: { readonly near: TestLanes; readonly far: TestLanes };
let service: TcpServer;
let inbound: TunnelInbound;
let path: LossyPath;
let location: AgentLocation;

/** The first byte says what to do: swallow and answer with a hash, or give. */
function serve(socket: Socket): void {
  const hash = createHash('sha256');
  socket.once('data', (first: Buffer) => {
    if (first.toString('latin1', 0, 1) === 'g') {
      for (let i = 0; i < CHUNKS; i++) socket.write(CHUNK);
      socket.end();
      return;
    }
    hash.update(first.subarray(1));
    socket.on('data', (chunk: Buffer) => hash.update(chunk));
    socket.on('end', () => socket.end(hash.digest('hex')));
  });
}

function hashOfAll(): string {
  const hash = createHash('sha256');
  for (let i = 0; i < CHUNKS; i++) hash.update(CHUNK);
  return hash.digest('hex');
}

before(async () => {
  await Promise.all([near.start(), far.start()]);
  lanes = { near: await TestLanes.open(), far: await TestLanes.open() };
  connections = new WideCaller({ clock: systemClock, links: near.links, lanes: lanes.near });
  service = await TcpServer.start(serve);
  inbound = new TunnelInbound({
    clock: systemClock,
    log: silentLog,
    lanes: lanes.far.lanes,
    serviceOf: () => ({ ...service.address, takesTunnels: true }),
    authorize: () => {},
    connect,
    isNamed: () => false,
    maxConnections: () => Number.POSITIVE_INFINITY,
  });
  for (const purpose of TUNNEL_PURPOSES) far.links.accept(purpose, (link) => inbound.accept(link));
  path = await LossyPath.open({ target: far.endpoint.address, oneWayMs: RTT_MS / 2, loss: 0.02 });
  location = {
    aid: far.aid,
    nodeKey: far.key.publicKey,
    addresses: [path.address],
    ...UNHELPED,
    delegationIssuedAt: 0,
  };
  near.directory.set(far.aid, location);
});

after(async () => {
  inbound.stop();
  await Promise.all(Object.values(lanes).map(async (one) => await one[Symbol.asyncDispose]()));
  await Promise.all([near.stop(), far.stop()]);
  path[Symbol.dispose]();
  await service[Symbol.asyncDispose]();
});

async function openWide(): Promise<Duplex> {
  const { stream } = await connections.open(near.aid, far.aid, { kind: 'direct', rttMs: RTT_MS }, {});
  assert.ok(stream instanceof Duplex);
  return stream;
}

test('an upload that loses packets goes over a lane for bulk, and arrives whole', async () => {
  const stream = await openWide();
  stream.write('s');
  const answer: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => answer.push(chunk));
  // How soon there is a lane is the machine's affair: the upload goes on until much has gone that way.
  const hash = createHash('sha256');
  const isMuch = (): boolean => lanes.far.lanes.stats().received > (CHUNKS * CHUNK.length) / 4;
  for (let i = 0; i < CHUNKS || !isMuch(); i++) {
    assert.ok(i < MAX_CHUNKS, 'nothing goes over a lane');
    hash.update(CHUNK);
    if (!stream.write(CHUNK)) await once(stream, 'drain');
  }
  stream.end();
  await once(stream, 'end');
  // Before the answer stands the byte that says that the service has accepted.
  assert.equal(Buffer.concat(answer).toString('latin1', 1), hash.digest('hex'));
  await eventually('no lane is left', () => lanes.near.lanes.stats().lanes === 0);
});

test('a download asks for a lane, and outlives the loss of it', async () => {
  const before = lanes.near.opened.length;
  const stream = await openWide();
  stream.write('g');
  const hash = createHash('sha256');
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    hash.update(bytes === 0 ? chunk.subarray(1) : chunk);
    bytes += chunk.length;
    if (bytes > (CHUNKS * CHUNK.length) / 4) lanes.near.opened[before]?.abort();
  });
  const ended = once(stream, 'end');
  await eventually('a lane', () => lanes.near.opened.length > before);
  await ended;
  assert.equal(lanes.near.opened[before]?.destroyed, true);
  assert.equal(bytes, CHUNKS * CHUNK.length + 1);
  assert.equal(hash.digest('hex'), hashOfAll());
  stream.end();
});

test('on a short path nothing but the one connection is used', async () => {
  const { link, stream } = await connections.open(near.aid, far.aid, { kind: 'direct', rttMs: 1 }, {});
  assert.equal(link.purpose, 'tcp-lasting');
  stream.destroy();
});

test('a transfer over one connection goes on when that is lost, plain or wide, up and down', async () => {
  const lose = (): void => near.pool.current(far.key.publicKey)?.close();
  const stream = await openWide();
  stream.write('s');
  // The service has accepted.
  await once(stream, 'readable');
  const answer = readAll(stream);
  for (let i = 0; i < CHUNKS; i++) {
    if (i === 2) lose();
    if (!stream.write(CHUNK)) await once(stream, 'drain');
  }
  stream.end();
  assert.equal((await answer).toString('latin1', 1), hashOfAll());

  const plain = await connections.open(near.aid, far.aid, { kind: 'direct', rttMs: 1 }, {});
  assert.ok(plain.stream instanceof LastingConnection);
  const [user, joined, server] = await tcpPair();
  join(joined, plain.stream, {}, true);
  user.write('g');
  const hash = createHash('sha256');
  let bytes = 0;
  let lost = 0;
  user.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
    if (bytes < (lost + 1) * 256 * 1024 || lost === 4) return;
    lost++;
    lose();
  });
  await once(user, 'end');
  assert.equal(lost, 4);
  assert.equal(hash.digest('hex'), hashOfAll());
  user.end();
  await eventually('nothing is left', () => connections.counts.standing === 0 && connections.counts.keptBytes === 0);
  await eventually('nor on the other side', () => inbound.lasting.known === 0 && inbound.lasting.keptBytes === 0);
  await server[Symbol.asyncDispose]();
});
