/** What links do when an agent has moved, or a connection has broken or gone silent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { BESIDE_MS, SILENCE_MS } from '../../../src/network/links/link-initiator.ts';
import { OPEN_TIMEOUT_MS } from '../../../src/network/links/links.ts';
import { NODE_DIAL_TIMEOUT_MS } from '../../../src/network/peers/dial.ts';
import { delegateAnew, newIdentity } from '../../support/identities.ts';
import { LinkWorld, readAll, settle, withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

test('an agent that moved is looked up afresh once', async () => {
  await using world = new LinkWorld();
  const [a, b, c] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const called = newIdentity();
  c.host(called);
  c.echo();
  // The cached place answers, but the agent has gone from there.
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

test('an agent with a newer delegation elsewhere is called there, and not the copy that is left here', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const left = a.host();
  const moved = delegateAnew(left.master, left.delegation.issuedAt + 10);
  const [here, there] = [a.inbox(), b.inbox()];
  b.host(moved);
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [1, 0], 'nothing is known of the newer delegation yet');
  a.newest.set(moved.aid, moved.delegation.issuedAt);
  const link = await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual(link.nodeKey, b.key.publicKey);
  assert.deepEqual([here.length, there.length], [1, 1]);
  // What was met once counts, whoever forgets it.
  a.newest.clear();
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [1, 2]);
  a.host(delegateAnew(left.master, moved.delegation.issuedAt + 10));
  await a.links.open(caller.aid, left.aid, 'tcp');
  assert.deepEqual([here.length, there.length], [2, 2], 'it was taken back');
});

test('the copy here is called while no record says where the newer delegation is', async () => {
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

test('an agent that is nowhere is not found, and is asked for only twice', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const caller = a.host();
  const gone = newIdentity();
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  world.directory.set(gone.aid, b.location(gone));
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  // Its record names us, but it is no longer here.
  world.directory.set(gone.aid, a.location(gone));
  await assert.rejects(a.links.open(caller.aid, gone.aid, 'tcp'), withCode('resolve_failed'));
  assert.equal(world.asked.length, 5);
});

test('a place that does not answer is asked for afresh and then given up', async () => {
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

test('a connection that broke is replaced without a word', async () => {
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

test('reset leads the next link to a new connection and leaves standing links alone', async () => {
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

test('beside a connection that has gone silent a new one is dialled', async () => {
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
  assert.ok(!first.destroyed, 'what stands on the silent connection is left alone');
  assert.equal(a.pool.stats().connections, 2);
  first.destroy();
});

test('a node that brings no packet on the old connection nor a new one is given up, and dialled anew later', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node(), await world.node()];
  const [caller, called] = [a.host(), b.host()];
  b.inbox();
  const standing = await a.links.open(caller.aid, called.aid, 'tcp');
  b.authorize = () => new Promise(() => {});
  world.network.silence(b.endpoint.address);
  const opening = assert.rejects(a.links.open(caller.aid, called.aid, 'tcp'), withCode('connect_failed'));
  await settle();
  clock.advance(SILENCE_MS);
  await settle();
  clock.advance(BESIDE_MS);
  await opening;
  assert.equal(standing.destroyed, false, 'what stands may outlive a short break');
  assert.equal(a.pool.current(b.key.publicKey), null);
  standing.destroy();
});

test('a slow answer on a silent connection still counts where no new one can be had', async () => {
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

test('where the first attempt is answered after all, the second one leaves nothing behind', async () => {
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
    assert.equal(b.authorized.length, before, 'asked once');
    assert.equal(a.pool.stats().streams, 1);
  }
  assert.equal(inbox.length, 2);
});

/** This process is held up: all its timers end late, before anything is read that came meanwhile. */
async function stall(clock: TestClock): Promise<void> {
  clock.jump(60_000);
  clock.advance(0);
  await settle();
}

test('while this process stalled, the other node was not silent', async () => {
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
  assert.equal(b.pool.stats().connections, 1, 'no other one was dialled');
  permission.resolve();
  (await opening).destroy();
});

test('a stall while a new connection is dialled does not make the node count as gone', async () => {
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
  clock.advance(BESIDE_MS - 1);
  await stall(clock);
  permission.resolve();
  (await opening).destroy();
  assert.notEqual(a.pool.current(b.key.publicKey), null);
});

test('a node that is first dialled counts as unreachable only after time in which it could be heard', async () => {
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
  // Once more where the directory says afresh.
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await opening;
});
