import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Joiner } from '../../../src/capabilities/groups/joiner.ts';
import type { Replica } from '../../../src/capabilities/groups/replica.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { newIdentity } from '../../support/identities.ts';

/** A group of Ann, and Ben, who can reach only the agents that the test allows. */
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
    antiEntropy: {
      scheduleSync: (rid) => void soon.push(rid),
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

test('an agent with the link fetches the log from the creator and writes its join', async () => {
  const { here, ann, ben, groupId, link, asked, soon, joiner } = setUp();
  assert.deepEqual(await joiner.join(ben, { link, hints: [] }), { groupId, joined: true, title: 'Plans' });
  assert.deepEqual(asked, [ann]);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  assert.deepEqual(soon, []);
});

test('if no member answers, joining continues later; a limited number is tried at first', async () => {
  const { here, ann, ben, groupId, link, asked, soon, answering, joiner } = setUp();
  answering.clear();
  const hints = Array.from({ length: 6 }, () => newIdentity().aid);
  assert.equal((await joiner.join(ben, { link, hints })).joined, false);
  assert.deepEqual(asked, hints.slice(0, 4));
  const { rid, state } = here.replicas.row(ben, groupId);
  assert.deepEqual([state, soon], ['joining', [rid]]);
  answering.add(ann);
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true);
  assert.deepEqual(soon, [rid, rid], 'a known group is synced again');
});

test('an agent that is not admitted stays outside with the entries it has fetched', async () => {
  const { here, ann, ben, groupId, joiner } = setUp();
  const bare = `svc://${ann}/groups/${groupId}`;
  assert.equal((await joiner.join(ben, { link: bare, hints: [] })).joined, false);
  assert.deepEqual(here.kinds(ben, groupId), ['create']);
  assert.equal(here.replicas.row(ben, groupId).state, 'joining');
});

test('an invited agent needs no secret, and false data of an invitation is corrected', async () => {
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

test('a member stays a member if it joins again, and a sync of its group writes nothing', async () => {
  const { here, ben, groupId, link, joiner } = setUp();
  await joiner.join(ben, { link, hints: [] });
  const replica = here.replicas.open(here.replicas.row(ben, groupId));
  joiner.synced(replica);
  assert.equal((await joiner.join(ben, { link, hints: [] })).joined, true);
  assert.deepEqual(here.kinds(ben, groupId), ['create', 'join']);
  here.groups.setState(replica.rid, 'joining');
  joiner.synced(replica);
  assert.equal(here.replicas.row(ben, groupId).state, 'member', 'its entry is already here');
});

test('an agent that was deleted or has fetched no entries writes nothing', async () => {
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

test('a wrong clock is reported, and the group is joined when the clock is right', async () => {
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
  assert.equal((await joiner.join(ben, { link, hints: [ann] })).joined, true, 'a member needs no peer');
});
