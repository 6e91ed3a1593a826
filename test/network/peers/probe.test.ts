/** Probes of open connections: in memory, with the clock of the test, and over the native engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { PROBE_RATE, PROBE_RATE_PER_NETWORK, PROBE_RATE_PER_SOURCE } from '../../../src/network/peers/peer-table.ts';
import { ANSWERED_MS } from '../../../src/network/peers/session.ts';
import { KIND, STATUS } from '../../../src/network/peers/wire.ts';
import { NativeNode } from '../../support/link-process.ts';
import { type LinkNode, LinkWorld, settle, withCode } from '../../support/link-world.ts';
import { RawPeer, type RawSession, statusOn } from '../../support/raw-peer.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;

async function connected(from: Pick<LinkNode, 'pool'>, to: Pick<LinkNode, 'endpoint' | 'key'>): Promise<Uint8Array> {
  const { publicKey } = to.key;
  await from.pool.connect({ nodeKey: publicKey, addresses: [to.endpoint.address], ...UNHELPED }, never);
  return publicKey;
}

test('a reachable node answers over the connection in use, and no stream stays open', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const key = await connected(a, b);
  const { rttMs, path } = await a.pool.probe(key);
  assert.ok(rttMs >= 0 && rttMs < ANSWERED_MS);
  assert.deepEqual(path, a.pool.current(key)?.connection.path);
  await settle();
  assert.deepEqual([a.pool.stats().streams, b.pool.stats().streams, b.pool.gate.waiting], [0, 0, 0]);
});

test('over the native engine both sides can send many probes concurrently', async () => {
  const [a, b] = [new NativeNode(KeyPair.generate(), 0), new NativeNode(KeyPair.generate(), 0)];
  await Promise.all([a.start(), b.start()]);
  try {
    const key = await connected(a, b);
    const asked = await Promise.all(Array.from({ length: PROBE_RATE.burst }, () => a.pool.probe(key)));
    assert.ok(asked.every(({ rttMs, path }) => rttMs > 0 && path.kind === 'lan'));
    assert.equal((await b.pool.probe(a.key.publicKey)).path.remote.host, '127.0.0.1');
    assert.equal(a.pool.stats().connections, 1);
  } finally {
    await Promise.all([a.stop(), b.stop()]);
  }
});

test('without a connection no probe is sent, and no node is dialed', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  await assert.rejects(a.pool.probe(b.key.publicKey), withCode('connect_failed'));
  assert.equal(a.pool.stats().connections, 0);
  const key = await connected(a, b);
  const asked = assert.rejects(a.pool.probe(key), withCode('connect_failed'));
  a.pool.current(key)?.close();
  await asked;
});

test('a node that does not support probes still counts as reachable', async () => {
  await using world = new LinkWorld();
  const [a, old] = [await world.node(), await RawPeer.in(world)];
  old.onSession((session) => session.onStream((stream) => void stream.end(Uint8Array.of(STATUS.unknownPurpose))));
  const key = await connected(a, old);
  assert.ok((await a.pool.probe(key)).rttMs >= 0);
});

test('a probe times out, without counting stalls of this process, and can be aborted earlier', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, mute] = [await world.node(), await RawPeer.in(world)];
  const key = await connected(a, mute);
  let outcome = 'waits';
  const asked = assert.rejects(a.pool.probe(key), withCode('timeout')).then(() => {
    outcome = 'late';
  });
  await settle();
  clock.advance(ANSWERED_MS - 1);
  clock.jump(60_000);
  clock.advance(0);
  await settle();
  assert.equal(outcome, 'waits', 'this process stalled');
  clock.advance(ANSWERED_MS);
  await asked;
  const impatient = new AbortController();
  const cut = assert.rejects(a.pool.probe(key, impatient.signal), withCode('cancelled'));
  await settle();
  impatient.abort();
  await cut;
});

test('probes of strangers have a rate by node, source and network that nodes in use do not share', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const node = await world.node();
  const peers = async (...hosts: string[]) =>
    await Promise.all(hosts.map(async (host) => await (await RawPeer.in(world, host)).connect(node)));
  const ask = async (peer: RawSession | undefined): Promise<number | undefined> =>
    await statusOn((await peer?.send(Uint8Array.of(KIND.probe))) ?? assert.fail());
  const flood = async (peer: RawSession | undefined, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) assert.equal(await ask(peer), STATUS.ok);
    assert.equal(await ask(peer), STATUS.rateLimited);
  };
  const [one, two, third, fourth] = await peers('198.51.100.1', '198.51.100.1', '198.51.100.1', '198.51.100.2');
  await flood(one, PROBE_RATE.burst);
  await flood(two, PROBE_RATE_PER_SOURCE.burst - PROBE_RATE.burst);
  assert.equal(await ask(third), STATUS.rateLimited, 'another key at the same source');
  await flood(fourth, PROBE_RATE.burst);
  const [fifth, sixth, other] = await peers('198.51.100.3', '198.51.100.4', '203.0.113.1');
  await flood(fifth, PROBE_RATE_PER_NETWORK.burst - PROBE_RATE_PER_SOURCE.burst - PROBE_RATE.burst);
  assert.equal(await ask(sixth), STATUS.rateLimited, 'another source in the same network');
  assert.equal(await ask(other), STATUS.ok);
  const used = await RawPeer.in(world, '198.51.100.1');
  node.pool.known.note(used.key.publicKey);
  assert.equal(await ask(await used.connect(node)), STATUS.ok, 'a node in use');
  clock.advance(1000);
  assert.equal(await ask(one), STATUS.ok);
});
