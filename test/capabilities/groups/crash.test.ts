/** Power loss at every commit of either side: acknowledged changes survive, and replicas converge. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type CrashPoint, crashingStore } from '../../support/crashing-store.ts';
import { type GroupNode, GroupWorld } from '../../support/group-world.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const ANN = newIdentity();
const BEN = newIdentity();

/** Runs a group in which one side loses power at a crash point. Returns the number of its commits. */
async function live(t: TestContext, side: 'ann' | 'ben', point: CrashPoint): Promise<number> {
  const file = join(temporaryDirectory(t), 'svcd.db');
  const world = new GroupWorld();
  const crashing = crashingStore(file, point);
  const plain = Store.open(':memory:', MIGRATIONS);
  let ann = await world.node(ANN, side === 'ann' ? crashing.store : plain);
  let ben = await world.node(BEN, side === 'ben' ? crashing.store : plain);
  crashing.arm();
  const revive = async (): Promise<void> => {
    if (!crashing.crashed()) return;
    if (ann.store !== crashing.store && ben.store !== crashing.store) return;
    const store = Store.open(file, MIGRATIONS, 'normal');
    t.after(() => store.close());
    if (side === 'ann') ann = await ann.restart(store);
    else ben = await ben.restart(store);
  };
  /** Runs an operation. After a power loss, repeats it until it succeeds or `isDone` returns a value. */
  const insist = async <T>(act: () => T | Promise<T>, isDone: () => T | null): Promise<T> => {
    for (;;) {
      try {
        return await world.during(Promise.resolve().then(act));
      } catch (error) {
        if (!crashing.crashed()) throw error;
        await revive();
        const done = isDone();
        if (done !== null) return done;
      }
    }
  };
  const reached = async (what: string, holds: () => boolean): Promise<void> => {
    await world.until(what, () => crashing.crashed() || holds());
    await revive();
    await world.until(what, holds);
  };
  const heard = (node: GroupNode, groupId: string): string[] =>
    node.groups.list(node.aid).some((group) => group.groupId === groupId) ? node.texts(groupId) : [];
  const sent: string[] = [];
  const say = async (node: () => GroupNode, text: string): Promise<void> => {
    await insist(
      () => void node().say(groupId, text),
      () => (heard(node(), groupId).includes(text) ? undefined : null),
    );
    sent.push(text);
  };
  const isIn = (): boolean => ben.groups.list(ben.aid).some(({ role }) => role === 'member');
  const enter = async (way: object): Promise<void> => {
    await insist(
      async () => void (await ben.groups.join(ben.aid, { groupId, hints: [], ...way })),
      () => (ben.table.find(ben.aid, groupId)?.state === 'joining' || isIn() ? undefined : null),
    );
    await reached('ben is a member', () => isIn() && ann.groups.head(ann.aid, groupId).memberCount === 2);
  };

  const groupId = await insist(
    () => ann.groups.create(ann.aid, 'first').groupId,
    () => ann.groups.list(ann.aid)[0]?.groupId ?? null,
  );
  const { link } = ann.groups.head(ann.aid, groupId);
  await say(() => ann, 'before');
  await insist(
    async () => void (await ann.groups.invite(ann.aid, groupId, ben.aid)),
    () => null,
  );
  await reached('the invitation', () => ben.table.inviteIn(ben.aid, groupId) !== null);
  await enter({});
  await say(() => ann, 'to ben');
  await say(() => ben, 'to ann');
  await reached('both have both entries', () => [ann, ben].every((node) => heard(node, groupId).length === 3));
  const [oops] = ann.groups.read(ann.aid, groupId, { afterSeq: 0, limit: 1, kind: 'msg' }).entries;
  assert.ok(oops !== undefined);
  const { entryId } = oops;
  const isGone = (node: GroupNode): boolean => heard(node, groupId).filter((text) => text === '').length === 1;
  await insist(
    () => void ann.groups.retract(ann.aid, groupId, entryId),
    () => (isGone(ann) ? undefined : null),
  );
  await reached('the retraction', () => isGone(ann) && isGone(ben));
  await insist(
    () => ben.groups.leave(ben.aid, groupId),
    () => (isIn() ? null : undefined),
  );
  await reached('ann receives it', () => ann.groups.head(ann.aid, groupId).memberCount === 1);
  await say(() => ann, 'while ben is away');
  await enter({ link });
  await insist(
    () => void ann.groups.append(ann.aid, groupId, { kind: 'title', body: Buffer.from('second') }),
    () => (ann.groups.head(ann.aid, groupId).title === 'second' ? undefined : null),
  );
  await say(() => ben, 'back');
  await reached('equal replicas', () => ann.fingerprint(groupId) === ben.fingerprint(groupId));
  const wanted = sent.map((text) => (text === 'before' ? '' : text));
  for (const node of [ann, ben]) {
    assert.deepEqual(node.texts(groupId).sort(), wanted.toSorted(), 'lost or duplicated');
    assert.equal(node.groups.head(node.aid, groupId).title, 'second');
  }
  await world.stop();
  return crashing.commits();
}

for (const side of ['ann', 'ben'] as const) {
  test(`${side} loses power at each commit, before or after it is on disk`, async (t) => {
    const commits = await live(t, side, { commit: 0, kept: false });
    // Entries that arrive together share a commit.
    assert.ok(commits > 10, `${commits}`);
    for (let commit = 1; commit <= commits; commit++)
      for (const kept of [false, true]) await live(t, side, { commit, kept });
  });
}

test('a removal and its new link survive any power loss together or not at all', async (t) => {
  for (let commit = 1; ; commit++) {
    const file = join(temporaryDirectory(t), 'svcd.db');
    const world = new GroupWorld();
    const crashing = crashingStore(file, { commit, kept: true });
    const ann = await world.node(ANN, crashing.store);
    const { groupId } = ann.groups.create(ANN.aid);
    crashing.arm();
    try {
      ann.groups.append(ANN.aid, groupId, { kind: 'remove', to: [BEN.aid] });
    } catch {
      // The result of notifying others does not matter here.
    }
    const store = Store.open(file, MIGRATIONS, 'normal');
    t.after(() => store.close());
    const after = await ann.restart(store);
    const { entries } = after.groups.read(ANN.aid, groupId, { afterSeq: 0, limit: 50 });
    const kinds = entries.map(({ kind }) => kind);
    await world.stop();
    assert.deepEqual(kinds, kinds.includes('remove') ? ['create', 'remove', 'rekey'] : ['create']);
    if (!crashing.crashed()) return;
  }
});
