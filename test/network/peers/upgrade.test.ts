/** A better path next to a worse one, over two real connections of the native engine. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { loadEngine, privateKeyProto, type QuicEngine } from '../../../src/network/transport/quic/engine.ts';
import { eventually } from '../../support/eventually.ts';
import { NativeNode } from '../../support/link-process.ts';
import { readAll } from '../../support/link-world.ts';

const MIB = 1024 * 1024;
const [near, far] = [new NativeNode(KeyPair.generate(), 0), new NativeNode(KeyPair.generate(), 0)];

before(async () => {
  await Promise.all([near.start(), far.start()]);
  const { endpoint, key } = far;
  const location = { aid: far.aid, nodeKey: key.publicKey, addresses: [endpoint.address], ...UNHELPED };
  near.directory.set(far.aid, { ...location, delegationIssuedAt: 0 });
});

after(() => Promise.all([near.stop(), far.stop()]));

test('a link continues over the relay while new links use the punched path', async () => {
  const { publicKey } = far.key;
  const relayed = await near.endpoint.dial(far.endpoint.address, publicKey, { way: { kind: 'relay' } });
  await near.pool.upgrade(relayed);
  const old = await near.links.open(near.aid, far.aid, 'tcp');
  assert.equal(old.path().kind, 'relay');
  old.write('before, ');
  const punched = await near.endpoint.dial(far.endpoint.address, publicKey, { way: { kind: 'punched' } });
  const session = await near.pool.upgrade(punched);
  assert.equal(session.connection, punched);
  const fresh = await near.links.open(near.aid, far.aid, 'tcp');
  assert.deepEqual([old.path().kind, fresh.path().kind], ['relay', 'punched']);
  assert.equal(near.pool.stats().connections, 2);
  const both = Promise.all([readAll(old), readAll(fresh)]);
  for (let i = 0; i < 8; i++) if (!old.write(Buffer.alloc(MIB, 1))) await once(old, 'drain');
  old.end('after');
  fresh.end('fresh');
  const [one, other] = await both;
  assert.equal(one.length, 'before, after'.length + 8 * MIB);
  assert.ok(one.subarray(-5).toString() === 'after' && other.toString() === 'fresh');
  relayed.close();
  await eventually('the relay connection is closed', () => (near.pool.stats().connections === 1 ? true : undefined));
  const last = await near.links.open(near.aid, far.aid, 'tcp');
  assert.equal(last.path().kind, 'punched');
  last.destroy();
});

/** The configuration of the engine for a separate socket. */
function config(engine: QuicEngine, key: KeyPair): object {
  return new engine.QuinnConfig({
    privateKeyProto: privateKeyProto(key),
    handshakeTimeout: 5000,
    shutdownTimeout: 100,
    maxIdleTimeout: 5000,
    keepAliveInterval: 1000,
    maxConcurrentStreamLimit: 100,
    maxStreamData: MIB,
    maxConnectionData: MIB,
    receiveBufferSize: MIB,
    sendBufferSize: MIB,
    initialMtu: 1200,
    mtuUpperBound: 1200,
  });
}

test('connections over separate sockets are adopted at both ends, with their path', async () => {
  const [one, other] = [new NativeNode(KeyPair.generate(), 0), new NativeNode(KeyPair.generate(), 0)];
  await Promise.all([one.start(), other.start()]);
  const engine = loadEngine();
  const server = new engine.Server(config(engine, other.key), '127.0.0.1', 0);
  const client = new engine.Client(config(engine, one.key), 0);
  try {
    const [inbound, outbound] = await Promise.all([
      server.inboundConnection(),
      client.outboundConnection('127.0.0.1', server.port()),
    ]);
    const theirs = other.endpoint.adopt(inbound, { outbound: false, way: { kind: 'relay', source: '192.0.2.7' } });
    assert.deepEqual([theirs.path.kind, theirs.path.source, theirs.outbound], ['relay', '192.0.2.7', false]);
    const ours = one.endpoint.adopt(outbound, { outbound: true, way: { kind: 'relay' } });
    assert.equal(ours.path.source, `node ${Buffer.from(other.key.publicKey).toString('hex')}`);
    const session = await one.pool.upgrade(ours);
    assert.equal(session.connection, ours);
    assert.equal(other.pool.current(one.key.publicKey)?.connection, theirs);
  } finally {
    await Promise.all([one.stop(), other.stop()]);
    client.abort();
    await server.abort();
  }
  assert.equal(one.pool.stats().connections + other.pool.stats().connections, 0, 'they close with their endpoints');
});
