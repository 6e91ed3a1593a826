import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Joiner } from '../../../src/capabilities/groups/joiner.ts';
import type { Replica } from '../../../src/capabilities/groups/replica.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { newIdentity } from '../../support/identities.ts';

/** A group of ann's, and ben, who reaches those whom the test lets answer. */
function setUp() {
  const there = new GroupParts();
  const ann = there.agent();
  const { groupId, link } = there.writer.create(ann, 'Plans');
  const here = new GroupParts(there.clock);
  const ben = here.agent();
  const asked: Aid[] = [];
  const soon: number[] = [];
  const answering = new Set([ann]);
  const failure = { next: new SvcError('connect_failed') };
  const joiner = new Joiner({
    groups: here.groups,
    replicas: here.replicas,
    writer: here.writer,
    spread: {
      soon: (rid) => void soon.push(rid),
      syncNow: async (replica: Replica, peer: Aid) => {
        asked.push(peer);
        if (!answering.has(peer)) throw failure.next;
        here.writer.admit(replica, there.log(ann, groupId), peer);
        joiner.synced(replica);
      },
    },
    log: silentLog,
    clockAheadMs: () => here.aheadMs,
  });
  return { there, ann, groupId, link, here, ben, asked, soon, answering, failure, joiner };
}

test('who has the link asks the creator, takes the log and writes that it joins', async () => {
  const { here, ann, ben, groupId, link, asked, soon, joiner } = setUp();
  assert.deepEqual(await joiner.join(ben, { link, hints: [] }), { groupId, joined: true, title: 'Plans' });
  assert.deepEqual(asked, [ann]);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  assert.deepEqual(soon, []);
});

test('where nobody answers joining goes on later; only so many are asked at first', async () => {
  const { here, ann, ben, groupId, link, asked, soon, answering, joiner } = setUp();
  answering.clear();
  const hints = Array.from({ length: 6 }, () => newIdentity().aid);
  assert.equal((await joiner.join(ben, { link, hints })).joined, false);
  assert.deepEqual(asked, hints.slice(0, 4));
  const { rid, state } = here.replicas.row(ben, groupId);
  assert.deepEqual([state, soon], ['joining', [rid]]);
  answering.add(ann);
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true);
  assert.deepEqual(soon, [rid, rid], 'what was known before is compared again');
});

test('whom the group does not let in stays outside with what it has read', async () => {
  const { here, ann, ben, groupId, joiner } = setUp();
  const bare = `svc://${ann}/groups/${groupId}`;
  assert.equal((await joiner.join(ben, { link: bare, hints: [] })).joined, false);
  assert.deepEqual(here.kinds(ben, groupId), ['create']);
  assert.equal(here.replicas.row(ben, groupId).state, 'joining');
});

test('an invited agent needs no secret, and what a false invitation said is mended', async () => {
  const { there, here, ann, ben, groupId, asked, joiner } = setUp();
  const eve = newIdentity().aid;
  const invitation = { aid: ben, groupId, inviter: eve, creator: eve, title: 'False', secret: null, at: 0 };
  here.groups.putInviteIn(invitation, 10);
  assert.deepEqual(await joiner.join(ben, { groupId, hints: [] }), { groupId, joined: false, title: 'False' });
  assert.deepEqual(asked, [eve]);
  const before = here.replicas.open(here.replicas.row(ben, groupId));
  there.writer.appendAny(ann, groupId, { kind: 'invite', to: [ben] });
  assert.deepEqual(await joiner.join(ben, { groupId, creator: ann, hints: [ann] }), {
    groupId,
    joined: true,
    title: 'Plans',
  });
  const { creator, state } = here.replicas.row(ben, groupId);
  assert.deepEqual([creator, state], [ann, 'member']);
  assert.notEqual(here.replicas.open(here.replicas.row(ben, groupId)), before);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'invite', 'join']);
});

test('a member stays one whatever it joins again, and a comparison of its group writes nothing', async () => {
  const { here, ben, groupId, link, joiner } = setUp();
  await joiner.join(ben, { link, hints: [] });
  const replica = here.replicas.open(here.replicas.row(ben, groupId));
  joiner.synced(replica);
  assert.equal((await joiner.join(ben, { link, hints: [] })).joined, true);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  here.groups.setState(replica.rid, 'joining');
  joiner.synced(replica);
  assert.equal(here.replicas.row(ben, groupId).state, 'member', 'its entry is here already');
});

test('an agent that is gone meanwhile, or has read nothing yet, writes nothing', async () => {
  const { here, ben, groupId, link, answering, joiner } = setUp();
  answering.clear();
  await joiner.join(ben, { link, hints: [] });
  const replica = here.replicas.open(here.replicas.row(ben, groupId));
  joiner.synced(replica);
  assert.equal(replica.maxSeq, 0);
  here.agents.delete(ben);
  joiner.synced(replica);
  assert.equal(here.groups.byRid(replica.rid)?.state, 'joining');
  await assert.rejects(joiner.join(ben, { link, hints: [] }), { code: 'not_found' });
});

test('a wrong clock is said, and the group is joined once it is right', async () => {
  const { here, ann, ben, groupId, link, answering, failure, joiner } = setUp();
  here.aheadMs = 60_001;
  await assert.rejects(joiner.join(ben, { link, hints: [] }), { code: 'clock_wrong', details: { offset_s: -60.001 } });
  assert.equal(here.replicas.row(ben, groupId).state, 'joining');
  here.aheadMs = 0;
  assert.equal((await joiner.join(ben, { link, hints: [] })).joined, true);

  const { joiner: other, ...second } = setUp();
  second.answering.clear();
  second.failure.next = new SvcError('clock_wrong');
  await assert.rejects(other.join(second.ben, { link: second.link, hints: [] }), { code: 'clock_wrong' });
  answering.clear();
  failure.next = new SvcError('clock_wrong');
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true, 'a member needs nobody');
});
