import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GroupParts } from '../../support/group-parts.ts';
import { newIdentity } from '../../support/identities.ts';

const GROUP = 'ab'.repeat(32);

test('an open replica is reused until its stored state changes', () => {
  const parts = new GroupParts();
  const ann = parts.agent();
  const { groupId } = parts.writer.create(ann, 'one');
  const row = parts.replicas.row(ann, groupId);
  const copy = parts.replicas.open(row);
  assert.equal(parts.replicas.open(parts.replicas.row(ann, groupId)), copy);
  assert.equal(parts.replicas.byRid(row.rid), copy);
  assert.equal(parts.replicas.served(ann, groupId), copy);
  parts.replicas.reopen(row.rid);
  const fresh = parts.replicas.open(row);
  assert.notEqual(fresh, copy);
  assert.equal(fresh.maxSeq, copy.maxSeq);
});

test('a reused number does not open the replica of the previous group', () => {
  const parts = new GroupParts();
  const ann = parts.agent();
  const { groupId } = parts.writer.create(ann, 'one');
  const row = parts.replicas.row(ann, groupId);
  parts.replicas.open(row);
  assert.equal(parts.replicas.open({ ...row, groupId: GROUP }).groupId, GROUP);
});

test('groups of an agent that is not on this node, and unknown groups, are not found', () => {
  const parts = new GroupParts();
  const ann = parts.agent();
  const { groupId } = parts.writer.create(ann, 'one');
  const { rid } = parts.replicas.row(ann, groupId);
  assert.throws(() => parts.replicas.row(ann, GROUP), { code: 'not_found' });
  assert.equal(parts.replicas.served(ann, GROUP), null);
  assert.equal(parts.replicas.byRid(rid + 1), null);
  parts.agents.delete(ann);
  assert.throws(() => parts.replicas.row(ann, groupId), { code: 'not_found' });
  assert.equal(parts.replicas.byRid(rid), null);
  assert.equal(parts.replicas.served(ann, groupId), null);
});

test('an empty replica is not served, and syncs first with the agents in its hints', () => {
  const parts = new GroupParts();
  const [ann, ben, cid] = [parts.agent(), newIdentity().aid, newIdentity().aid];
  const group = { aid: ann, groupId: GROUP, creator: ben, title: '', secret: null, hints: [cid, ann, ben] };
  const row = parts.replicas.add({ ...group, state: 'joining' });
  assert.equal(parts.replicas.served(ann, GROUP), null);
  const copy = parts.replicas.open(row);
  assert.deepEqual(parts.replicas.peers(copy), [cid, ben]);
  assert.equal(parts.replicas.proof(copy), undefined, 'no secret is known');
  parts.groups.setState(row.rid, 'member');
  assert.equal(parts.replicas.served(ann, GROUP), copy);
  assert.deepEqual(parts.replicas.peers(copy), [], 'the log has no members');
});

test('an agent with the join secret proves it, and each proof is valid for one agent', () => {
  const parts = new GroupParts();
  const [ann, ben] = [parts.agent(), parts.agent()];
  const secret = new Uint8Array(32).fill(3);
  const proofs = [ann, ben].map((aid) => {
    const group = { aid, groupId: GROUP, creator: ann, title: '', secret, hints: [], state: 'joining' as const };
    return parts.replicas.proof(parts.replicas.open(parts.replicas.add(group)));
  });
  assert.ok(proofs[0] !== undefined);
  assert.notDeepEqual(proofs[0], proofs[1]);
});

test('deleting an agent deletes its groups and no others', () => {
  const parts = new GroupParts();
  const [ann, ben] = [parts.agent(), parts.agent()];
  const [of, kept] = [parts.writer.create(ann, 'gone'), parts.writer.create(ben, 'kept')];
  const copy = parts.replicas.open(parts.replicas.row(ann, of.groupId));
  parts.replicas.forget(ann);
  assert.throws(() => parts.replicas.row(ann, of.groupId), { code: 'not_found' });
  assert.equal(parts.replicas.byRid(copy.rid), null);
  assert.equal(parts.replicas.row(ben, kept.groupId).title, 'kept');
});
