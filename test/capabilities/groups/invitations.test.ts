import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Invitations } from '../../../src/capabilities/groups/invitations.ts';
import type { InvitationNote } from '../../../src/capabilities/groups/types.ts';
import { INVITATION_LIFE_MS } from '../../../src/foundation/domain/groups.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { GroupParts } from '../../support/group-parts.ts';
import { newIdentity } from '../../support/identities.ts';

type NoteHandler = (recipient: Aid, note: InvitationNote) => void;

/** A group of Ann. The test controls the delivery of notes. */
function setUp() {
  const parts = new GroupParts();
  const ann = parts.agent();
  const { groupId } = parts.writer.create(ann, 'Plans');
  const sent: { readonly to: Aid; readonly body: Uint8Array }[] = [];
  const mail = { delivers: true, fails: false };
  const handlers: NoteHandler[] = [];
  const { groups, replicas, writer, clock } = parts;
  const invitations = new Invitations(
    {
      isKnown: () => false,
      random: () => 0,
      events: { emit: () => 0 },
      groups,
      clock,
      notes: {
        send: async (_sender, to, _type, body) => {
          sent.push({ to, body });
          if (mail.fails) throw new SvcError('connect_failed');
          return { delivered: mail.delivers };
        },
        onNote: (_type, handler) => void handlers.push(handler),
      },
      log: silentLog,
    },
    replicas,
    writer,
  );
  const { rid } = parts.replicas.row(ann, groupId);
  const receive: NoteHandler = (recipient, note) => handlers[0]?.(recipient, note);
  return { parts, ann, groupId, rid, sent, mail, invitations, receive };
}

test('an invitation is one entry even if it is sent twice, and contains the link data', async () => {
  const { parts, ann, groupId, sent, mail, invitations, receive } = setUp();
  const ben = newIdentity().aid;
  assert.equal(await invitations.invite(ann, groupId, ben), true);
  mail.delivers = false;
  assert.equal(await invitations.invite(ann, groupId, ben), false);
  assert.deepEqual(parts.kinds(ann, groupId), ['create', 'invite']);
  assert.deepEqual(
    sent.map(({ to }) => to),
    [ben, ben],
  );
  receive(ben, { sender: ann, body: sent[0]?.body ?? new Uint8Array() });
  const { secret } = parts.replicas.row(ann, groupId);
  const at = parts.clock.now();
  assert.deepEqual(parts.groups.inviteIn(ben, groupId), {
    aid: ben,
    groupId,
    inviter: ann,
    creator: ann,
    title: 'Plans',
    secret,
    at,
  });
});

test('an agent cannot invite itself, a member, or anyone to a group that it is not a member of', async () => {
  const { parts, ann, groupId, rid, sent, invitations } = setUp();
  const ben = newIdentity().aid;
  await assert.rejects(invitations.invite(ann, groupId, ann), { code: 'self' });
  const cid = parts.agent();
  await assert.rejects(invitations.invite(cid, groupId, ben), { code: 'not_found' });
  const group = { aid: cid, groupId, creator: ann, title: '', secret: null, hints: [], state: 'joining' as const };
  const copy = parts.replicas.open(parts.replicas.add(group));
  parts.writer.admit(copy, parts.log(ann, groupId), ann);
  await assert.rejects(invitations.invite(cid, groupId, ann), { code: 'wrong_state' });
  await assert.rejects(invitations.invite(cid, groupId, ben), { code: 'not_member' });
  assert.deepEqual([sent, parts.groups.invitesOut(rid)], [[], []]);
});

test('a failed invitation is repeated with growing delays until it expires', async () => {
  const { parts, ann, groupId, rid, sent, mail, invitations } = setUp();
  const { clock } = parts;
  mail.fails = true;
  invitations.start();
  assert.equal(await invitations.invite(ann, groupId, newIdentity().aid), false);
  // After half a minute, one, two and more minutes, then every hour.
  await clock.run(6 * 3600_000);
  assert.equal(sent.length, 12);
  clock.jump(INVITATION_LIFE_MS - 6 * 3600_000 - 60_000);
  await clock.run(30_000);
  assert.equal(sent.length, 13);
  assert.equal(parts.groups.invitesOut(rid).length, 1);
  clock.jump(3600_000);
  await clock.run(30_000);
  assert.deepEqual([sent.length, parts.groups.invitesOut(rid)], [13, []]);
  await invitations.stop();
  assert.equal(clock.timers, 0);
});

test('a delivered invitation is not repeated, and one stored in the network is repeated once a day', async () => {
  const { parts, ann, groupId, sent, mail, invitations } = setUp();
  const [ben, cid] = [newIdentity().aid, newIdentity().aid];
  await invitations.invite(ann, groupId, ben);
  mail.delivers = false;
  await invitations.invite(ann, groupId, cid);
  invitations.start();
  for (let day = 0; day < 3; day++) {
    await parts.clock.run(60_000);
    parts.clock.jump(24 * 3600_000);
  }
  await parts.clock.run(60_000);
  await invitations.stop();
  assert.deepEqual(
    sent.map(({ to }) => to),
    [ben, cid, cid, cid, cid],
  );
});

test('an invitation of a clock that was ahead is repeated when the clock is right, and not for longer', async () => {
  const { parts, ann, groupId, rid, sent, mail, invitations } = setUp();
  const { clock, groups } = parts;
  const ben = newIdentity().aid;
  mail.fails = true;
  clock.jump(365 * 24 * 3600_000);
  await invitations.invite(ann, groupId, ben);
  clock.jump(-365 * 24 * 3600_000);
  mail.fails = false;
  invitations.start();
  await clock.run(60_000);
  await invitations.stop();
  assert.equal(sent.length, 2);
  assert.ok((groups.invitesOut(rid)[0]?.until ?? 0) <= clock.now() + INVITATION_LIFE_MS);
});

test('a group that the agent has left sends no more invitations', async () => {
  const { parts, ann, groupId, rid, sent, mail, invitations } = setUp();
  mail.fails = true;
  await invitations.invite(ann, groupId, newIdentity().aid);
  parts.groups.setState(rid, 'left');
  invitations.start();
  await parts.clock.run(3600_000);
  await invitations.stop();
  assert.equal(sent.length, 1);
  assert.deepEqual(parts.groups.invitesOut(rid), []);
});

test('a note that is not an invitation remains an ordinary note', () => {
  const { parts, groupId, receive } = setUp();
  const [ben, eve] = [newIdentity().aid, newIdentity().aid];
  for (const body of [new Uint8Array(), new Uint8Array(2000), Buffer.from('a0', 'hex'), Buffer.from('hello')])
    receive(ben, { sender: eve, body });
  assert.equal(parts.groups.inviteIn(ben, groupId), null);
});
