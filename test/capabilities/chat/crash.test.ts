/** Power loss at every commit of either side: acknowledged entries are delivered once. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { type ChatNode, ChatWorld } from '../../support/chat-world.ts';
import { type CrashPoint, crashingStore } from '../../support/crashing-store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const ALICE = newIdentity();
const BOB = newIdentity();

/** Runs a conversation in which one side loses power at a crash point. Returns the number of its commits. */
async function talk(t: TestContext, side: 'a' | 'b', point: CrashPoint, name: string): Promise<number> {
  const directory = temporaryDirectory(t);
  const world = new ChatWorld();
  const crashing = crashingStore(join(directory, `${name}.db`), point);
  const plain = Store.open(':memory:', MIGRATIONS);
  let a = await world.node('a', side === 'a' ? crashing.store : plain);
  let b = await world.node('b', side === 'b' ? crashing.store : plain);
  const alice = a.host(ALICE).aid;
  const bob = b.host(BOB).aid;
  crashing.arm();
  const sent = { a: [] as string[], b: [] as string[] };
  const revive = async (): Promise<void> => {
    if (!crashing.crashed()) return;
    const store = Store.open(join(directory, `${name}.db`), MIGRATIONS, 'normal');
    t.after(() => store.close());
    if (side === 'a' && a.store === crashing.store) a = await a.restart(store);
    if (side === 'b' && b.store === crashing.store) b = await b.restart(store);
  };
  /** Repeats an operation until it succeeds, as a client does after a power loss. */
  const insist = async (act: (node: ChatNode) => unknown, node: () => ChatNode): Promise<void> => {
    for (;;) {
      try {
        await world.during(Promise.resolve(act(node())));
        return;
      } catch (error) {
        if (!crashing.crashed()) throw error;
        await revive();
        if (node().state(alice, bob) === 'friends') return;
      }
    }
  };
  const reached = async (what: string, holds: () => boolean): Promise<void> => {
    await world.until(what, () => crashing.crashed() || holds());
    await revive();
    await world.until(what, holds);
  };
  await insist(
    (node) => node.chat.request(alice, bob, 'hi'),
    () => a,
  );
  await reached('the request', () => b.state(bob, alice) !== 'none');
  await insist(
    (node) => node.chat.accept(bob, alice),
    () => b,
  );
  await reached('friends', () => a.state(alice, bob) === 'friends');
  for (let i = 0; i < 4; i++) {
    for (const from of ['a', 'b'] as const) {
      const [node, local, peer] = from === 'a' ? [a, alice, bob] : [b, bob, alice];
      try {
        await world.during(node.say(local, peer, `${from}${i}`));
        sent[from].push(`${from}${i}`);
      } catch (error) {
        if (!crashing.crashed()) throw error;
        await revive();
      }
    }
  }
  await revive();
  const check = (heard: (string | null)[], wanted: readonly string[], attempted: string): boolean => {
    assert.equal(new Set(heard).size, heard.length, `twice: ${heard.join()}`);
    const numbers = heard.map((text) => Number(text?.slice(attempted.length)));
    assert.ok(
      numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? 0)),
      `out of order: ${heard.join()}`,
    );
    return wanted.every((text) => heard.includes(text));
  };
  await reached(
    'all acknowledged entries',
    () => check(b.heard(bob, alice), sent.a, 'a') && check(a.heard(alice, bob), sent.b, 'b'),
  );
  await reached('receipts', () =>
    [...a.log(alice, bob), ...b.log(bob, alice)].every(({ status }) => status !== 'queued'),
  );
  await a.down();
  await b.down();
  return crashing.commits();
}

for (const side of ['a', 'b'] as const) {
  test(`side ${side} loses power at each of its commits, before or after it is on disk`, async (t) => {
    const commits = await talk(t, side, { commit: 0, kept: false }, 'whole');
    assert.ok(commits > 10, `${commits}`);
    for (let commit = 1; commit <= commits; commit++)
      for (const kept of [false, true]) await talk(t, side, { commit, kept }, `${commit}-${kept}`);
  });
}
