import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, type EntryContent, proveSecret, signEntry } from '../../../src/capabilities/groups/entry.ts';
import { MAX_GROUP_ENTRIES, Replica } from '../../../src/capabilities/groups/replica.ts';
import { type Message, receive, send } from '../../../src/capabilities/groups/wire.ts';
import { encodeCbor } from '../../../src/foundation/cbor.ts';
import { u32 } from '../../../src/network/peers/wire.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { delegateAnew, localIdentity, newIdentity } from '../../support/identities.ts';

const never = new AbortController().signal;

/** The replica of a node. */
function copyOf(node: GroupNode, groupId: string): Replica {
  const row = node.table.find(node.aid, groupId);
  assert.ok(row !== null);
  return new Replica(row, { groups: node.table, entries: node.entries });
}

/** Pushes any bytes, as a member would. */
async function push(world: GroupWorld, from: GroupNode, to: GroupNode, groupId: string, entries: Uint8Array[]) {
  const talk = async (): Promise<Message> => {
    const link = await from.links.open(from.aid, to.aid, 'group');
    send(link, { type: 'push', groupId, entries });
    const answer = await receive(link, never);
    link.destroy();
    return answer;
  };
  return world.during(talk());
}

test('forged, edited and foreign entries are rejected, even from a member', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const copy = copyOf(ben, groupId);
  const eve = newIdentity();
  const content = (more: Partial<EntryContent> = {}): EntryContent => ({
    ...copy.compose({ kind: 'msg', body: Buffer.from('forged') }, world.clock.now()),
    ...more,
  });
  const good = signEntry(content(), ben.identity);
  const edited = Uint8Array.from(good.encoded);
  const at = Buffer.from(edited).indexOf('forged');
  edited[at] = (edited[at] ?? 0) ^ 1;
  const other = ann.groups.create(ann.aid).groupId;
  const forgeries: Uint8Array[] = [
    edited,
    signEntry(content({ author: eve.aid }), localIdentity(eve)).encoded,
    signEntry(content({ author: ann.aid }), ben.identity).encoded,
    signEntry(content({ author: ann.aid }), { ...localIdentity(eve), delegation: ann.agent.delegation }).encoded,
    signEntry(content({ depth: 99 }), ben.identity).encoded,
    signEntry(content({ at: world.clock.now() - 3_600_000 }), ben.identity).encoded,
    signEntry(content({ groupId: other }), ben.identity).encoded,
    signEntry(content({ kind: 'remove', to: [ann.aid] }), ben.identity).encoded,
    signEntry(content({ kind: 'role', to: [ben.aid], body: Buffer.from('admin') }), ben.identity).encoded,
    signEntry(content({ kind: 'create', parents: [], depth: 0 }), ben.identity).encoded,
    Buffer.from('garbage'),
  ];
  const before = ann.fingerprint(groupId);
  for (const forgery of forgeries) await push(world, ben, ann, groupId, [forgery]);
  assert.equal(ann.fingerprint(groupId), before);
  await push(world, ben, ann, groupId, [good.encoded]);
  assert.ok(ann.texts(groupId).includes('forged'));
  await world.stop();
});

test('an entry from the future is admitted when its time is at most ten minutes away', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const content = { kind: 'msg', body: Buffer.from('later') } as const;
  const early = signEntry(copyOf(ben, groupId).compose(content, world.clock.now() + 605_000), ben.identity);
  await push(world, ben, ann, groupId, [early.encoded]);
  assert.deepEqual(ann.texts(groupId), []);
  await world.clock.run(6_000);
  await push(world, ben, ann, groupId, [early.encoded]);
  assert.deepEqual(ann.texts(groupId), ['later']);
  await world.stop();
});

test('a peer that requests endlessly and reads nothing gets no more responses and is disconnected', async (t) => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  for (let i = 0; i < 100; i++) ann.say(groupId, 'x'.repeat(2000));
  await world.clock.run(5000);
  const asked = t.mock.method(ann.entries, 'bytesAfter');
  const copy = copyOf(ben, groupId);
  const link = await world.during(ben.links.open(ben.aid, ann.aid, 'group'));
  const have = { heads: [], maxSeq: 0, epoch: new Uint8Array(0) };
  send(link, { type: 'hello', groupId: copy.groupId, have });
  for (let i = 0; i < 500; i++) send(link, { type: 'pull', after: 0 });
  await world.clock.run(5000);
  assert.ok(asked.mock.callCount() > 0);
  assert.ok(asked.mock.callCount() < 20, `${asked.mock.callCount()} responses were made`);
  await world.until('the link is closed', () => link.destroyed);
  await world.stop();
});

test('an entry that arrives before its parents waits for them', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  await world.clock.run(5000);
  world.links.part(ann.links, ben.links);
  const ids = ['one', 'two', 'three'].map((text) => ben.say(groupId, text).entryId);
  const rid = ben.table.find(ben.aid, groupId)?.rid ?? 0;
  const entries = ids.map((id) => ben.entries.bytes(rid, id) ?? new Uint8Array(0));
  await world.clock.run(2000);
  world.links.heal();
  for (const [entry, complete] of [
    [entries[2], false],
    [entries[1], false],
    [entries[0], true],
  ] as const)
    assert.deepEqual(await push(world, ben, ann, groupId, [entry ?? new Uint8Array(0)]), { type: 'taken', complete });
  assert.deepEqual(ann.texts(groupId), ['one', 'two', 'three']);
  await world.stop();
});

test('entries that a removed member writes after its removal are rejected, concurrent ones are hidden', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('all are members', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  const before = copyOf(cid, groupId);
  const beside = signEntry(
    before.compose({ kind: 'msg', body: Buffer.from('beside') }, world.clock.now()),
    cid.identity,
  );
  const invite = signEntry(
    before.compose({ kind: 'invite', to: [newIdentity().aid] }, world.clock.now()),
    cid.identity,
  );
  ann.groups.append(ann.aid, groupId, { kind: 'remove', to: [cid.aid] });
  await world.until('ben knows', () => ben.groups.head(ben.aid, groupId).memberCount === 2);
  const after: Entry = signEntry(
    {
      ...copyOf(ben, groupId).compose({ kind: 'msg', body: Buffer.from('behind') }, world.clock.now()),
      author: cid.aid,
    },
    cid.identity,
  );
  assert.equal((await push(world, cid, ann, groupId, [beside.encoded])).type, 'refuse');
  // Ben is a member and forwards any entry.
  await push(world, ben, ann, groupId, [after.encoded, beside.encoded, invite.encoded]);
  const { entries } = ann.groups.read(ann.aid, groupId, { afterSeq: 0, limit: 50, author: cid.aid });
  assert.deepEqual(
    entries.map(({ kind }) => kind),
    ['join'],
  );
  const rid = ann.table.find(ann.aid, groupId)?.rid ?? 0;
  assert.deepEqual(
    [after, beside].map(({ id }) => ann.entries.has(rid, id)),
    [false, true],
  );
  ben.say(groupId, 'go on');
  await world.until('equal', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  await world.stop();
});

test('an admin cannot lock out the creator or other admins with a removal that it may not write', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid, eve] = nodes;
  const groupId = await groupOf(world, nodes);
  const members = (node: GroupNode) => node.groups.head(node.aid, groupId).members;
  const roles = (node: GroupNode): number => members(node).filter(({ role }) => role !== 'member').length;
  await world.until('all are members', () => nodes.every((node) => members(node).length === 4));
  for (const { aid } of [ben, eve])
    ann.groups.append(ann.aid, groupId, { kind: 'role', to: [aid], body: Buffer.from('admin') });
  await world.until('the roles', () => nodes.every((node) => roles(node) === 3));
  // Syncs that have begun end.
  await world.clock.run(1000);
  const copy = copyOf(eve, groupId);
  eve.links.accept('group', (link) => {
    const entry = signEntry(copy.compose({ kind: 'remove', to: [link.caller] }, world.clock.now()), eve.identity);
    void receive(link, AbortSignal.timeout(10_000)).then(() => send(link, { type: 'refuse', entry: entry.encoded }));
  });
  for (const node of [ann, ben, cid])
    await assert.rejects(world.during(node.groups.sync(node.aid, groupId, eve.aid)), { code: 'not_member' });
  const states = [ann, ben, cid].map((node) => node.table.find(node.aid, groupId)?.state);
  assert.deepEqual(states, ['member', 'member', 'removed']);
  await world.stop();
});

test('an older key of an agent cannot write after the entry that shows its newer key', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const stolen = ben.identity;
  const renewed = delegateAnew(ben.agent.master, ben.agent.delegation.issuedAt + 10);
  ben.identity = localIdentity(renewed);
  await world.clock.run(60_000);
  ben.say(groupId, 'new key');
  await world.until('ann has it', () => ann.texts(groupId).includes('new key'));
  const theft = copyOf(ben, groupId).compose({ kind: 'msg', body: Buffer.from('stolen') }, world.clock.now());
  await push(world, ben, ann, groupId, [signEntry(theft, stolen).encoded]);
  assert.deepEqual(ann.texts(groupId), ['new key']);
  await world.stop();
});

test('malformed and oversized messages end the session and nothing else', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const hello = encodeCbor({ m: 'hello', g: Buffer.alloc(31), h: Buffer.alloc(0), n: 0, e: Buffer.alloc(16) });
  const frames = [
    Buffer.from('ffffffff00', 'hex'),
    Buffer.concat([u32(3), Buffer.from('abc')]),
    Buffer.concat([u32(hello.length), hello]),
    Buffer.concat([u32(encodeCbor({ m: 'toString' }).length), encodeCbor({ m: 'toString' })]),
  ];
  for (const frame of frames) {
    const link = await world.during(ben.links.open(ben.aid, ann.aid, 'group'));
    link.on('error', () => {});
    link.write(frame);
    await world.until('the end of the session', () => link.destroyed);
  }
  ben.say(groupId, 'still works');
  await world.until('the message', () => ann.texts(groupId).includes('still works'));
  await world.stop();
});

test('a flood of entries whose parents never arrive fills no storage and blocks nothing', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const content = copyOf(ben, groupId).compose({ kind: 'msg' }, world.clock.now());
  const { maxSeq } = ann.groups.head(ann.aid, groupId);
  const orphan = (n: number): Uint8Array => {
    const missing = n.toString(16).padStart(64, '0');
    return signEntry({ ...content, parents: [missing, ...content.parents].sort() }, ben.identity).encoded;
  };
  for (let i = 0; i < 4; i++) {
    const batch = Array.from({ length: 200 }, (_, n) => orphan(i * 200 + n + 1));
    assert.deepEqual(await push(world, ben, ann, groupId, batch), { type: 'taken', complete: false });
  }
  assert.equal(ann.groups.head(ann.aid, groupId).maxSeq, maxSeq);
  ben.say(groupId, 'still works');
  await world.until('the message', () => ann.texts(groupId).includes('still works'));
  await world.stop();
});

test('many forks are merged again, and an entry that merges too many forks is rejected', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('all are members', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  const content = copyOf(ben, groupId).compose({ kind: 'invite' }, world.clock.now());
  const fork = (more: Partial<EntryContent>): Entry => signEntry({ ...content, ...more }, ben.identity);
  const forks = Array.from({ length: 320 }, () => fork({ to: [newIdentity().aid] }));
  for (let i = 0; i < forks.length; i += 64)
    await push(
      world,
      ben,
      ann,
      groupId,
      forks.slice(i, i + 64).map(({ encoded }) => encoded),
    );
  const joint = (parents: readonly Entry[]): Entry =>
    fork({
      kind: 'msg',
      parents: parents.map(({ id }) => id).sort(),
      depth: Math.max(...parents.map(({ depth }) => depth)) + 1,
    });
  const some = Array.from({ length: 10 }, (_, i) => joint(forks.slice(i * 32, i * 32 + 32)));
  const all = joint(some);
  await push(
    world,
    ben,
    ann,
    groupId,
    [...some, all].map(({ encoded }) => encoded),
  );
  const rid = ann.table.find(ann.aid, groupId)?.rid ?? 0;
  assert.deepEqual(
    [...some, all].map(({ id }) => ann.entries.has(rid, id)),
    [...some.map(() => true), false],
  );
  for (let i = 0; i < 4; i++) ann.say(groupId, `on top ${i}`);
  const { kind } = ann.groups.read(ann.aid, groupId, { afterSeq: 0, limit: 1, kind: 'key' }).entries[0] ?? {};
  assert.equal(kind, 'key');
  assert.equal(ann.entries.heads(rid, 10).length, 1);
  await world.until('equal', () => ann.fingerprint(groupId) === cid.fingerprint(groupId));
  await world.stop();
});

test('a member that withholds announced entries is backed off, and another member is used', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node(), await world.node()] as const;
  const [ann, ben, cid] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('all are members', () =>
    nodes.every((node) => node.groups.head(node.aid, groupId).memberCount === 3),
  );
  world.links.part(ann.links, cid.links);
  world.links.part(ben.links, cid.links);
  for (let i = 0; i < 300; i++) ann.say(groupId, `${i}`);
  await world.until('ben has all entries', () => ben.texts(groupId).length === 300);
  world.links.heal();
  let asked = 0;
  // Ben lists entries to callers, and sends no entry.
  ben.links.accept('group', (link) => {
    link.on('error', () => {});
    void (async () => {
      for (;;) {
        const message = await receive(link, never);
        asked++;
        const have = { heads: ['11'.repeat(32)], maxSeq: 1_000, epoch: new Uint8Array(16) };
        if (message.type === 'hello') send(link, { type: 'have', have });
        else if (message.type === 'list') send(link, { type: 'ids', upTo: 1_000, ids: ['22'.repeat(32)] });
        else if (message.type === 'have') send(link, { type: 'done' });
        else send(link, { type: 'entries', upTo: 0, entries: [] });
      }
    })().catch(() => link.destroy());
  });
  await world.until('ben receives a request', () => asked > 0);
  await world.until('cid has all entries', () => cid.texts(groupId).length === 300);
  await world.stop();
});

test('a sync ends after a hundred invalid entries', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  await world.clock.run(1000);
  const asked: number[] = [];
  ben.links.accept('group', (link) => {
    link.on('error', () => {});
    const talk = asked.push(0) - 1;
    void (async () => {
      for (;;) {
        const message = await receive(link, never);
        const have = { heads: ['11'.repeat(32)], maxSeq: 128, epoch: new Uint8Array(16) };
        if (message.type === 'hello') send(link, { type: 'have', have });
        else if (message.type === 'pull') {
          asked[talk] = (asked[talk] ?? 0) + 1;
          send(link, { type: 'entries', upTo: message.after + 1, entries: [Buffer.from('garbage')] });
        } else send(link, { type: 'done' });
      }
    })().catch(() => link.destroy());
  });
  await world.during(ann.groups.sync(ann.aid, groupId, ben.aid));
  assert.equal(asked[0], 101);
  await world.stop();
});

test('no cursors are stored for strangers that only know the link', async () => {
  const world = new GroupWorld();
  const nodes = [await world.node(), await world.node()] as const;
  const [ann, ben] = nodes;
  const groupId = await groupOf(world, nodes);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  const eve = await world.node();
  const secret = ann.table.find(ann.aid, groupId)?.secret;
  assert.ok(secret instanceof Uint8Array);
  const proof = proveSecret(secret, groupId, eve.aid);
  const have = { heads: [], maxSeq: 5, epoch: new Uint8Array(16).fill(1) };
  const talk = async (): Promise<string[]> => {
    const link = await eve.links.open(eve.aid, ann.aid, 'group');
    send(link, { type: 'hello', groupId, have, proof });
    const first = await receive(link, never);
    send(link, { type: 'have', have });
    const second = await receive(link, never);
    link.destroy();
    return [first.type, second.type];
  };
  assert.deepEqual(await world.during(talk()), ['have', 'done']);
  // A cursor for Ben is stored after their first sync.
  const { rid } = ann.table.find(ann.aid, groupId) ?? assert.fail();
  const { epoch } = ben.table.find(ben.aid, groupId) ?? assert.fail();
  await world.until('a cursor for ben is stored', () => ann.table.cursor(rid, ben.aid, epoch) > 0);
  assert.equal(ann.table.cursor(rid, eve.aid, have.epoch), 0);
  await world.stop();
});

test('a peer that announces too many entries, makes no progress or gives a wrong answer ends the sync', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const groupId = await groupOf(world, [ann, ben]);
  await world.until('ben is a member', () => ann.groups.head(ann.aid, groupId).members.length === 2);
  await world.clock.run(1000);
  const asked: string[] = [];
  const have = { heads: ['11'.repeat(32)], maxSeq: 128, epoch: new Uint8Array(16) };
  const answers: { first: Message; later?: Message } = { first: { type: 'have', have } };
  ben.links.accept('group', (link) => {
    link.on('error', () => {});
    void (async () => {
      for (;;) {
        const { type } = await receive(link, never);
        asked.push(type);
        send(link, type === 'hello' ? answers.first : (answers.later ?? { type: 'done' }));
      }
    })().catch(() => link.destroy());
  });
  const sync = () =>
    assert.rejects(world.during(ann.groups.sync(ann.aid, groupId, ben.aid)), { code: 'protocol_error' });
  answers.first = { type: 'taken', complete: true };
  await sync();
  assert.deepEqual(asked.splice(0), ['hello']);
  answers.first = { type: 'have', have: { ...have, maxSeq: MAX_GROUP_ENTRIES + 1 } };
  await sync();
  assert.deepEqual(asked.splice(0), ['hello'], 'no entries are requested');
  answers.first = { type: 'have', have };
  answers.later = { type: 'entries', upTo: 0, entries: [] };
  await sync();
  assert.deepEqual(asked.splice(0), ['hello', 'pull']);
  answers.first = { type: 'have', have: { ...have, maxSeq: 1000 } };
  answers.later = { type: 'ids', upTo: 0, ids: [] };
  await sync();
  assert.deepEqual(asked.splice(0), ['hello', 'list'], 'a long list is compared before entries are fetched');
  await world.stop();
});
