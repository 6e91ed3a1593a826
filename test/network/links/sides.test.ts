/** Connections for bulk beside the one that two nodes use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UNHELPED } from '../../../src/network/links/dial.ts';
import { LINK_VERSION, networkId } from '../../../src/network/links/hello.ts';
import { SPARE_IDLE_MS } from '../../../src/network/links/idle-sweep.ts';
import { MAX_SIDES } from '../../../src/network/links/sides.ts';
import { STATUS } from '../../../src/network/links/status.ts';
import { eventually } from '../../support/eventually.ts';
import { LinkWorld, readAll, settle } from '../../support/link-world.ts';
import { RawPeer, statusOn } from '../../support/raw-peer.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;

test('a link beside another proves both agents anew, on a connection that is used for nothing else', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  const beside = await link.beside?.('tcp', 3, never);
  assert.ok(beside !== undefined);
  assert.deepEqual([beside.caller, beside.called, beside.purpose], [caller.aid, called.aid, 'tcp']);
  beside.end('over there');
  assert.equal((await readAll(beside)).toString(), 'over there');
  assert.equal(b.authorized.length, 2);
  assert.equal(a.pool.stats().connections, 2);
  // The same number is the same connection; a link of either side takes the usual one.
  const again = await link.beside?.('tcp', 3, never);
  assert.equal(a.pool.stats().connections, 2);
  assert.equal(a.pool.connections().filter(({ current }) => current).length, 1);
  a.echo('note');
  const back = await b.links.open(called.aid, caller.aid, 'note');
  assert.equal(b.pool.connections().find(({ current }) => current)?.streams, 2);
  for (const each of [link, again, back]) each?.destroy();
});

test('a lane is asked for like any other link, and can be refused', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  await assert.rejects(async () => link.beside?.('note', 0, never), { code: 'protocol_error' });
  await assert.rejects(async () => link.beside?.('tcp', MAX_SIDES, never), RangeError);
  link.destroy();
});

test('one that carries nothing is closed soon, and a restart of the other node closes all', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const place = { nodeKey: b.key.publicKey, addresses: [b.endpoint.address], ...UNHELPED };
  await a.pool.connect(place, never);
  await Promise.all([0, 1, 1].map((index) => a.pool.side(place, index, never)));
  assert.equal(a.pool.stats().connections, 3);
  clock.advance(2 * SPARE_IDLE_MS);
  await settle();
  assert.equal(a.pool.stats().connections, 1);
  await a.pool.side(place, 0, never);
  await b.stop();
  await eventually('the end', () => a.pool.stats().connections === 0);
  const reborn = await world.node({ key: b.key });
  await a.pool.side({ nodeKey: b.key.publicKey, addresses: [reborn.endpoint.address], ...UNHELPED }, 0, never);
  assert.equal(a.pool.stats().connections, 1);
});

test('the first byte says that a connection is one for bulk', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  for (const [kind, current] of [
    [0x04, []],
    [0x01, [true]],
  ] as const) {
    const stream = await (await raw.dial(a)).openStream();
    stream.end(Buffer.concat([Uint8Array.of(kind, LINK_VERSION), networkId(''), new Uint8Array(48)]));
    assert.equal(await statusOn(stream), STATUS.ok);
    assert.deepEqual(
      a.pool.connections().flatMap((one) => (one.current ? [true] : [])),
      current,
    );
  }
});

test('a node that dials too many of them keeps those that stand', async () => {
  await using world = new LinkWorld();
  const limits = { connectionsPerKey: 100 };
  const key = (await world.node()).key;
  const [one, two] = [await world.node({ key, limits }), await world.node({ limits })];
  const place = { nodeKey: two.key.publicKey, addresses: [two.endpoint.address], ...UNHELPED };
  await Promise.all(Array.from({ length: MAX_SIDES }, (_, i) => one.pool.side(place, i, never)));
  // A twin of the node, which has the same key and its own idea of what stands.
  one.pool.reset(two.key.publicKey);
  await assert.rejects(one.pool.side(place, 0, never), { code: 'connect_failed' });
  assert.equal(two.pool.stats().connections, MAX_SIDES);
});
