/** Tunnels between two nodes over the real engine, on a path with delay and loss. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { TunnelInbound } from '../../../src/capabilities/tunnels/inbound.ts';
import { OutboundConnections } from '../../../src/capabilities/tunnels/outbound.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { type AgentLocation, TUNNEL_PURPOSES } from '../../../src/network/links/types.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { TestLanes } from '../../support/bulk.ts';
import { eventually } from '../../support/eventually.ts';
import { NativeNode } from '../../support/link-process.ts';
import { readAll } from '../../support/link-world.ts';
import { LossyPath } from '../../support/lossy-path.ts';
import { TcpServer } from '../../support/tcp.ts';
import { tcpPair } from '../../support/tunnel-pair.ts';

const CHUNK = Buffer.alloc(64 * 1024, 'lanes');
/** Long enough that many packets are lost. */
const CHUNKS = 64;
/** More than any machine sends before it has a lane. */
const MAX_CHUNKS = 16 * CHUNKS;
const RTT_MS = 40;

const near = new NativeNode(KeyPair.generate(), 0);
const far = new NativeNode(KeyPair.generate(), 0, false);
let connections: OutboundConnections;
let lanes: { readonly near: TestLanes; readonly far: TestLanes };
let service: TcpServer;
let inbound: TunnelInbound;
let path: LossyPath;
let location: AgentLocation;

/** The first byte selects upload, answered with a hash, or download. */
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
  connections = new OutboundConnections(systemClock, near.links, lanes.near);
  service = await TcpServer.start(serve);
  inbound = new TunnelInbound({
    clock: systemClock,
    log: silentLog,
    bulk: lanes.far,
    entered: () => {},
    serviceOf: () => ({ ...service.address, takesTunnels: true }),
    authorize: () => {},
    enter: async () => () => () => {},
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

/** A connection through the tunnel: the user's end. */
async function open(): Promise<{ user: Socket; [Symbol.asyncDispose](): Promise<void> }> {
  const connection = await connections.open(near.aid, far.aid, {});
  const [user, joined, server] = await tcpPair();
  connection.join(joined, {}, true);
  return { user, [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose]() };
}

/** Uploads until it is enough, and compares the hash that the service answers. */
async function upload(isEnough: (chunks: number) => boolean): Promise<void> {
  await using tunnel = await open();
  const { user } = tunnel;
  const answer = readAll(user);
  user.write('s');
  const hash = createHash('sha256');
  for (let i = 0; !isEnough(i); i++) {
    assert.ok(i < MAX_CHUNKS, 'it is never enough');
    hash.update(CHUNK);
    if (!user.write(CHUNK)) await once(user, 'drain');
  }
  user.end();
  assert.equal(String(await answer), hash.digest('hex'));
}

/** Downloads, and reports each chunk. */
async function download(onBytes: (bytes: number) => void): Promise<void> {
  await using tunnel = await open();
  const { user } = tunnel;
  const hash = createHash('sha256');
  let bytes = 0;
  user.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
    onBytes(bytes);
  });
  user.write('g');
  await once(user, 'end');
  assert.equal(bytes, CHUNKS * CHUNK.length);
  assert.equal(hash.digest('hex'), hashOfAll());
  user.end();
}

test('an upload that loses packets moves to a lane, and arrives whole', async () => {
  // The time until there is a lane depends on the machine. The upload lasts until the lane has carried many bytes.
  await upload((chunks) => chunks >= CHUNKS && lanes.far.lanes.stats().received > (CHUNKS * CHUNK.length) / 4);
  await eventually('no lane is left', () => lanes.near.lanes.stats().lanes === 0);
});

test('a download requests a lane, survives its loss, and continues over the connection', async () => {
  const before = lanes.near.opened.length;
  let received = 0;
  await download((bytes) => {
    const lane = lanes.near.opened[before];
    if (lane !== undefined && !lane.destroyed && bytes > (3 * CHUNKS * CHUNK.length) / 4) {
      received = lane.traffic.received;
      lane.abort();
    }
  });
  assert.equal(lanes.near.opened[before]?.destroyed, true);
  assert.ok(received > CHUNK.length, `${received} bytes`);
});

test('a transfer continues when the connection between the nodes is lost, up and down', async () => {
  const lose = (): void => near.pool.current(far.key.publicKey)?.close();
  await upload((chunks) => {
    if (chunks === 2) lose();
    return chunks >= CHUNKS;
  });
  let lost = 0;
  await download((bytes) => {
    if (bytes < (lost + 1) * 256 * 1024 || lost === 4) return;
    lost++;
    lose();
  });
  assert.equal(lost, 4);
  await eventually(
    'the caller has no connection',
    () => connections.counts.open === 0 && connections.counts.keptBytes === 0,
  );
  await eventually('the called side has none', () => {
    const { known, keptBytes } = inbound.connections;
    return known === 0 && keptBytes === 0;
  });
});
