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

test('a newer delegation of a caller closes its links under the older one, and no other links', async () => {
  await using world = new LinkWorld();
  const [owner, attacker, b] = [await world.node(), await world.node(), await world.node()];
  const called = b.host();
  const inbox = b.inbox();
  const stolen = attacker.host();
  const other = attacker.host();
  const [theirs, kept] = [
    await attacker.links.open(stolen.aid, called.aid, 'tcp'),
    await attacker.links.open(other.aid, called.aid, 'tcp'),
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
  await assert.rejects(attacker.links.open(stolen.aid, called.aid, 'tcp'), withCode('access_denied'));
});

test('when the newer record of a called agent is found, links to its withdrawn delegation are closed', async () => {
  await using world = new LinkWorld();
  const [owner, attacker, a] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const stolen = attacker.host();
  const [before, after] = [attacker.inbox(), owner.inbox()];
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

test('a caller with a delegation that is replaced while permission is pending is rejected', async () => {
  await using world = new LinkWorld();
  const [owner, attacker, b] = [await world.node(), await world.node(), await world.node()];
  const called = b.host();
  const inbox = b.inbox();
  const stolen = attacker.host();
  const [asked, permission] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  b.authorize = ({ nodeKey }) => {
    if (nodeKey === null || !equalBytes(nodeKey, attacker.key.publicKey)) return undefined;
    asked.resolve();
    return permission.promise;
  };
  const refused = assert.rejects(attacker.links.open(stolen.aid, called.aid, 'tcp'), withCode('access_denied'));
  await asked.promise;
  owner.host(delegateAnew(stolen.master, stolen.delegation.issuedAt + 10));
  const ours = await owner.links.open(stolen.aid, called.aid, 'tcp');
  permission.resolve();
  await refused;
  assert.equal(inbox.length, 1);
  assert.ok(!ours.destroyed);
});

test('a called agent with a delegation that is replaced before its answer must prove itself again', async () => {
  await using world = new LinkWorld();
  const [owner, attacker, a] = [await world.node(), await world.node(), await world.node()];
  const caller = a.host();
  const stolen = attacker.host();
  attacker.inbox();
  owner.inbox();
  await a.links.open(caller.aid, stolen.aid, 'tcp');
  const [asked, permission] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  attacker.authorize = () => {
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

test('a newer delegation closes links under an older one, even if the delegation of the agent was evicted', () => {
  const openLinks = new OpenLinks();
  const floor = new DelegationFloor({ raised: (aid, issuedAt) => openLinks.endOlder(aid, issuedAt) });
  const [victim, old, current] = [testAid(1), new PassThrough(), new PassThrough()];
  floor.note(victim, 10, null);
  openLinks.add(victim, old, 10);
  openLinks.add(victim, current, 20);
  // An attacker invents agents until the victim is the least recently seen one.
  for (let n = 0; n < MAX_AGENTS; n++) floor.note(`made-up-${n}` as Aid, 10, null);
  assert.equal(floor.of(victim), 0, 'the victim is evicted');
  floor.note(victim, 20, null);
  assert.deepEqual([old.destroyed, current.destroyed], [true, false]);
});

test('a closed link is no longer tracked', async () => {
  const openLinks = new OpenLinks();
  const [one, two] = [new PassThrough(), new PassThrough()];
  for (const link of [one, two]) openLinks.add(testAid(1), link, 10);
  openLinks.add(testAid(2), new PassThrough(), 10);
  assert.equal(openLinks.agents, 2);
  for (const link of [one, two]) {
    const closed = closing(link);
    link.destroy();
    await closed;
  }
  assert.equal(openLinks.agents, 1);
  openLinks.endOlder(testAid(1), 11);
  openLinks.endOlder(testAid(2), 10);
  await settle();
  assert.equal(openLinks.agents, 1, 'no older delegation is involved');
  openLinks.endOlder(testAid(2), 11);
  await settle();
  assert.equal(openLinks.agents, 0);
});
