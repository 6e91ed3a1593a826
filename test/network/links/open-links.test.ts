import assert from 'node:assert/strict';
import { type Duplex, PassThrough } from 'node:stream';
import { test } from 'node:test';
import { equalBytes } from '../../../src/foundation/bytes.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { DelegationFloor, MAX_AGENTS, OpenLinks } from '../../../src/network/links/proven.ts';
import { testAid } from '../../support/agents.ts';
import { delegateAnew } from '../../support/identities.ts';
import { LinkWorld, settle, withCode } from '../../support/link-world.ts';

/** Settles once a stream has closed, with an error or without. */
function closing(stream: Duplex): Promise<unknown> {
  return new Promise((resolve) => {
    stream.once('close', resolve);
  });
}

test('links of a caller whose delegation was replaced end when the newer one is met, and only those', async () => {
  await using world = new LinkWorld();
  const [owner, thief, b] = [await world.node(), await world.node(), await world.node()];
  const called = b.host();
  const inbox = b.inbox();
  const stolen = thief.host();
  const other = thief.host();
  const [theirs, kept] = [
    await thief.links.open(stolen.aid, called.aid, 'tcp'),
    await thief.links.open(other.aid, called.aid, 'tcp'),
  ];
  const closed = closing(theirs);
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  const ours = await owner.links.open(stolen.aid, called.aid, 'tcp');
  await closed;
  const second = await owner.links.open(stolen.aid, called.aid, 'tcp');
  await settle();
  assert.deepEqual(
    inbox.map((link) => link.destroyed),
    [true, false, false, false],
  );
  assert.ok(![kept, ours, second].some((link) => link.destroyed));
  await assert.rejects(thief.links.open(stolen.aid, called.aid, 'tcp'), withCode('access_denied'));
});

test('links to a called agent that was taken back end when its newer record is found', async () => {
  await using world = new LinkWorld();
  const [owner, thief, a] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const stolen = thief.host();
  const [before, after] = [thief.inbox(), owner.inbox()];
  const old = await a.links.open(caller.aid, stolen.aid, 'tcp');
  assert.equal(before.length, 1);
  const closed = closing(old);
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  const link = await a.links.open(caller.aid, stolen.aid, 'tcp');
  await closed;
  await settle();
  assert.equal(after.length, 1);
  assert.ok(!link.destroyed);
});

test('a caller whose delegation is replaced while permission is pending is not let in with the old one', async () => {
  await using world = new LinkWorld();
  const [owner, thief, b] = [await world.node(), await world.node(), await world.node()];
  const called = b.host();
  const inbox = b.inbox();
  const stolen = thief.host();
  const [asked, permission] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  b.authorize = ({ nodeKey }) => {
    if (nodeKey === null || !equalBytes(nodeKey, thief.key.publicKey)) return undefined;
    asked.resolve();
    return permission.promise;
  };
  const refused = assert.rejects(thief.links.open(stolen.aid, called.aid, 'tcp'), withCode('access_denied'));
  await asked.promise;
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  const ours = await owner.links.open(stolen.aid, called.aid, 'tcp');
  permission.resolve();
  await refused;
  assert.equal(inbox.length, 1);
  assert.ok(!ours.destroyed);
});

test('a called agent whose delegation is replaced while its answer is awaited has to prove itself anew', async () => {
  await using world = new LinkWorld();
  const [owner, thief, a] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const stolen = thief.host();
  thief.inbox();
  owner.inbox();
  await a.links.open(caller.aid, stolen.aid, 'tcp');
  const [asked, permission] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  thief.authorize = () => {
    asked.resolve();
    return permission.promise;
  };
  const refused = assert.rejects(a.links.open(caller.aid, stolen.aid, 'tcp'), withCode('protocol_error'));
  await asked.promise;
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  await a.links.open(caller.aid, stolen.aid, 'tcp');
  permission.resolve();
  await refused;
});

test('whatever was forgotten of an agent, a newer delegation ends the links that stand with an older one', () => {
  const standing = new OpenLinks();
  const floor = new DelegationFloor({ raised: (aid, issuedAt) => standing.endOlder(aid, issuedAt) });
  const [victim, old, current] = [testAid(1), new PassThrough(), new PassThrough()];
  floor.note(victim, 10, null);
  standing.add(victim, old, 10);
  standing.add(victim, current, 20);
  // A thief makes up agents until his victim is the one not met for longest.
  for (let n = 0; n < MAX_AGENTS; n++) floor.note(`made-up-${n}` as Aid, 10, null);
  assert.equal(floor.of(victim), 0, 'the victim is forgotten');
  floor.note(victim, 20, null);
  assert.deepEqual([old.destroyed, current.destroyed], [true, false]);
});

test('a link that has closed is forgotten', async () => {
  const standing = new OpenLinks();
  const [one, two] = [new PassThrough(), new PassThrough()];
  for (const link of [one, two]) standing.add(testAid(1), link, 10);
  standing.add(testAid(2), new PassThrough(), 10);
  assert.equal(standing.agents, 2);
  for (const link of [one, two]) {
    const closed = closing(link);
    link.destroy();
    await closed;
  }
  assert.equal(standing.agents, 1);
  standing.endOlder(testAid(1), 11);
  standing.endOlder(testAid(2), 10);
  await settle();
  assert.equal(standing.agents, 1, 'it was proven with nothing older');
  standing.endOlder(testAid(2), 11);
  await settle();
  assert.equal(standing.agents, 0);
});
