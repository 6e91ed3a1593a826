/** How links recover when an agent has moved, or a connection is broken or silent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { REDIAL_MS, SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { OPEN_TIMEOUT_MS } from '../../../src/network/links/links.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../../../src/network/peers/dial.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { LinkWorld, readAll, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

test('an agent that moved is looked up once more without the cache', async () => {
  await using world = new LinkWorld();
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const called = newIdentity();
  c.host(called);
  c.echo();
  // The cached node answers, but the agent is no longer there.
  world.directory.set(called.aid, b.location(called));
  world.fresh.set(called.aid, c.location(called));
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  assert.deepEqual(link.nodeKey, c.key.publicKey);
  assert.deepEqual(
    world.asked.map((q) => q.fresh),
    [false, true],
  );
  link.destroy();
});

test('a call goes to the node with the newer delegation of an agent, not to the copy on this node', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const left = a.host();
  const moved = delegateAnew(left.master, left.delegation.issuedAt + 10);
  const [here, there] = [a.inbox(), b.inbox()];
  b.host(moved);
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [1, 0], 'the newer delegation is not known yet');
  a.newest.set(moved.aid, moved.delegation.issuedAt);
  const link = await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual(link.nodeKey, b.key.publicKey);
  assert.deepEqual([here.length, there.length], [1, 1]);
  // A delegation seen once counts, even if the stored copy is lost.
  a.newest.clear();
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [1, 2]);
  a.host(delegateAnew(left.master, moved.delegation.issuedAt + 10));
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [2, 2], 'this node has the newest delegation again');
});

test('the copy on this node is called while no record leads to the newer delegation', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const left = a.host();
  const here = a.inbox();
  a.newest.set(left.aid, left.delegation.issuedAt + 10);
  const copy = b.location(left);
  const ours = { ...a.location(left), delegationIssuedAt: left.delegation.issuedAt + 10 };
  for (const location of [null, copy, ours]) {
    world.directory.delete(left.aid);
    if (location !== null) world.directory.set(left.aid, location);
    await a.links.open(caller.aid, left.aid, 'tcp');
  }
  assert.equal(here.length, 3);
  assert.equal(b.pool.stats().connections, 0);
});

test('an unreachable agent is not found, and looked up only twice', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const gone = newIdentity();
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  world.directory.set(gone.aid, b.location(gone));
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  // Its record names this node, but it is no longer here.
  world.directory.set(gone.aid, a.location(gone));
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  assert.equal(world.asked.length, 5);
});

test('a silent node is looked up without the cache, then given up', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  world.network.silence(b.endpoint.address);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  clock.advance(OPEN_TIMEOUT_MS / 2);
  await opening;
  assert.deepEqual(
    world.asked.map((q) => q.fresh),
    [false, true],
  );
});

test('a broken connection is replaced automatically', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  const link = await a.links.open(caller.aid, called.aid, 'tcp');
  a.pool.current(b.key.publicKey)?.connection.close();
  await assert.rejects(readAll(link), { code: 'connection_lost' });
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.equal(a.pool.stats().connections, 1);
});

test('a reset moves the next link to a new connection and keeps open links', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  a.links.reset(called.aid);
  const before = await a.links.open(caller.aid, called.aid, 'tcp');
  a.links.reset(called.aid);
  const after = await a.links.open(caller.aid, called.aid, 'tcp');
  assert.equal(a.pool.stats().connections, 2);
  before.end('still here');
  assert.equal((await readAll(before)).toString(), 'still here');
  after.destroy();
});

test('a new connection is dialed in parallel to a silent one', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  const first = await a.links.open(caller.aid, called.aid, 'tcp');
  let asked = 0;
  b.authorize = () => {
    asked++;
    return asked === 1 ? new Promise(() => {}) : undefined;
  };
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  clock.advance(SILENCE_MS);
  (await opening).destroy();
  assert.equal(asked, 2);
  assert.equal(inbox.length, 2);
  assert.ok(!first.destroyed, 'links on the silent connection stay open');
  assert.equal(a.pool.stats().connections, 2);
  first.destroy();
});

test('a node that is silent on the old connection and on a new one is given up, and dialed again later', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  const existing = await a.links.open(caller.aid, called.aid, 'tcp');
  b.authorize = () => new Promise(() => {});
  world.network.silence(b.endpoint.address);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  clock.advance(SILENCE_MS);
  await settle();
  clock.advance(REDIAL_MS);
  await opening;
  assert.equal(existing.destroyed, false, 'open links may survive a short interruption');
  assert.equal(a.pool.current(b.key.publicKey), null);
  existing.destroy();
});

test('a slow answer on a silent connection still counts if no new connection can be opened', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  const permission = Promise.withResolvers<void>();
  b.authorize = () => permission.promise;
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  world.network.silence(b.endpoint.address);
  clock.advance(SILENCE_MS);
  await settle();
  permission.resolve();
  (await opening).destroy();
  assert.equal(a.pool.stats().connections, 1);
});

test('if the first attempt is answered after all, the second one leaves no stream open', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  const inbox = b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  for (const refusal of [undefined, new SvcError('access_denied')]) {
    const permission = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    b.authorize = () => {
      asked.resolve();
      return permission.promise;
    };
    const opening = a.links.open(caller.aid, called.aid, 'tcp');
    const outcome = refusal === undefined ? opening : assert.rejects(opening, withCode('access_denied'));
    await asked.promise;
    const before = b.authorized.length;
    clock.advance(SILENCE_MS);
    if (refusal === undefined) permission.resolve();
    else permission.reject(refusal);
    await outcome;
    await settle();
    assert.equal(b.authorized.length, before, 'no second request');
    assert.equal(a.pool.stats().streams, 1);
  }
  assert.equal(inbox.length, 2);
});

/** Stalls this process: all its timers fire late, before any received data is read. */
async function stall(clock: TestClock): Promise<void> {
  clock.jump(60_000);
  clock.advance(0);
  await settle();
}

test('while this process stalled, the other node does not count as silent', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  const permission = Promise.withResolvers<void>();
  b.authorize = () => permission.promise;
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  clock.advance(SILENCE_MS - 1);
  await stall(clock);
  clock.advance(SILENCE_MS - 1);
  await settle();
  assert.equal(b.pool.stats().connections, 1, 'no second connection is dialed');
  permission.resolve();
  (await opening).destroy();
});

test('a stall while a new connection is dialed does not mark the node as unreachable', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  const permission = Promise.withResolvers<void>();
  b.authorize = () => permission.promise;
  const opening = a.links.open(caller.aid, called.aid, 'tcp');
  await settle();
  world.network.silence(b.endpoint.address);
  clock.advance(SILENCE_MS);
  await settle();
  clock.advance(REDIAL_MS - 1);
  await stall(clock);
  permission.resolve();
  (await opening).destroy();
  assert.notEqual(a.pool.current(b.key.publicKey), null);
});

test('a node dialed for the first time is unreachable only after a timeout without stalls', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  world.network.silence(b.endpoint.address);
  let failed = false;
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed')).then(() => {
    failed = true;
  });
  await settle();
  clock.advance(NODE_DIAL_TIMEOUT_MS - 1);
  await stall(clock);
  assert.equal(failed, false);
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await settle();
  // The second dial, after the lookup without the cache.
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await opening;
});
