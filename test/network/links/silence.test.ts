/** A node that does not answer the first packets is reported to the opener of a link. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FRESH_MS, SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { LinkWorld, settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const MIN_MS = 100;

async function twoNodes() {
  const clock = new TestClock();
  const world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox('note');
  const reported: number[] = [];
  const stop = new AbortController();
  const open = (usualRttMs: number, roundTrips = 1.5) =>
    a.links
      .open(caller.aid, called.aid, 'note', {
        signal: stop.signal,
        silence: { minMs: MIN_MS, roundTrips, usualRttMs, onSilence: () => reported.push(clock.now()) },
      })
      .catch(() => null);
  return { clock, world, a, b, called, reported, open, stop };
}

test('a dial without an answer is reported after the usual round trips since its start, which may be an approach', async () => {
  const { clock, world, a, b, called, reported, open, stop } = await twoNodes();
  await using _ = world;
  world.network.silence(b.endpoint.address);
  const startedAt = clock.now();
  void a.links.approach(called.aid);
  await settle();
  clock.advance(200);
  const opening = open(200);
  await settle();
  clock.advance(99);
  assert.deepEqual(reported, []);
  clock.advance(1);
  assert.deepEqual(reported, [startedAt + 300]);
  stop.abort();
  await opening;
});

test('a quiet connection is probed by an approach, and its silence counts from there', async () => {
  const { clock, world, a, b, called, reported, open, stop } = await twoNodes();
  await using _ = world;
  (await open(0))?.destroy();
  await settle();
  const { connection } = a.pool.current(b.key.publicKey) ?? assert.fail('no connection');
  clock.advance(FRESH_MS);
  const before = connection.stats().bytesReceived;
  await a.links.approach(called.aid);
  assert.ok(connection.stats().bytesReceived > before, 'the probe is answered');
  world.network.cut(a.endpoint.address, b.endpoint.address);
  clock.advance(FRESH_MS);
  const startedAt = clock.now();
  void a.links.approach(called.aid);
  await settle();
  clock.advance(MIN_MS / 2);
  // The round trip of the connection counts, not the usual one.
  const opening = open(10_000);
  await settle();
  clock.advance(MIN_MS / 2 - 1);
  assert.deepEqual(reported, []);
  clock.advance(1);
  assert.deepEqual(reported, [startedAt + MIN_MS]);
  stop.abort();
  await opening;
});

test('another connection is dialed sooner if an earlier request had no answer', async (t) => {
  const { clock, world, a, b, open, stop } = await twoNodes();
  await using _ = world;
  const link = await open(0);
  const dial = t.mock.method(a.endpoint, 'dial');
  world.network.cut(a.endpoint.address, b.endpoint.address);
  link?.expectAnswer?.();
  clock.advance(SILENCE_MS - 1);
  const opening = open(0);
  await settle();
  assert.equal(dial.mock.callCount(), 0);
  clock.advance(1);
  await settle();
  assert.equal(dial.mock.callCount(), 1);
  stop.abort();
  await opening;
  link?.destroy();
});

test('a node that answers is not reported, nor one that only its helpers reach', async () => {
  const { clock, world, b, called, reported, open, stop } = await twoNodes();
  await using _ = world;
  (await open(0))?.destroy();
  b.authorize = () => new Promise(() => {});
  const opening = open(0);
  // Other traffic: another link of the same connection is answered.
  await settle();
  b.authorize = () => {};
  (await open(0))?.destroy();
  clock.advance(MIN_MS);
  assert.deepEqual(reported, []);
  const there = b.location(called);
  const helpers = [{ nodeKey: new Uint8Array(32), address: { host: '192.0.2.1', port: 1 } }];
  const [c] = [await world.node()];
  world.directory.set(called.aid, { ...there, nodeKey: c.key.publicKey, addresses: [c.endpoint.address], helpers });
  world.network.silence(c.endpoint.address);
  const other = open(0);
  await settle();
  clock.advance(MIN_MS);
  assert.deepEqual(reported, []);
  stop.abort();
  await Promise.all([opening, other]);
});
