import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BitSet,
  BlockPool,
  type ControlFact,
  ControlLog,
  MAX_FRONTIER,
} from '../../../src/capabilities/groups/control.ts';
import { MAX_MEMBERS } from '../../../src/foundation/domain/groups.ts';
import { type Aid, nativeAid } from '../../../src/foundation/identity/aid.ts';
import { Random } from '../../support/random.ts';

function agent(n: number): Aid {
  const key = Buffer.alloc(32, 7);
  key.writeUInt32BE(n);
  return nativeAid(new Uint8Array(key));
}

function fact(kind: ControlFact['kind'], author: Aid, subject = author): ControlFact {
  return { kind, author, subject, admin: false, bySecret: kind === 'join', joinKey: null, issuedAt: 0 };
}

test('sets with shared blocks contain the same integers as plain sets', () => {
  const random = new Random(5);
  const shared = new BlockPool();
  const made = [{ bits: BitSet.union([], []), numbers: new Set<number>() }];
  for (let i = 0; i < 300; i++) {
    const sources = [random.pick(made), random.pick(made)];
    const more = [random.below(10_000), random.below(10_000)];
    const bits = BitSet.union(
      sources.map((source) => source.bits),
      more,
      i % 2 === 0 ? shared : undefined,
    );
    made.push({ bits, numbers: new Set([...sources.flatMap(({ numbers }) => [...numbers]), ...more]) });
  }
  for (const { bits, numbers } of made) for (let n = 0; n < 10_100; n++) assert.equal(bits.has(n), numbers.has(n));
});

test('a long chain of control entries needs little more memory than the entries', () => {
  const control = new ControlLog();
  const [creator, flooder] = [agent(1), agent(2)];
  control.add(fact('create', creator), []);
  control.add(fact('join', flooder), [0]);
  const before = process.memoryUsage().arrayBuffers;
  for (let i = 0; i < 50_000; i++) control.add(fact('invite', flooder, agent(3 + (i % 1000))), [control.size - 1]);
  const bytes = process.memoryUsage().arrayBuffers - before;
  // Without sharing, the sets need 156 MB.
  assert.ok(bytes < 32_000_000, `${bytes}`);
  assert.deepEqual(
    control.members(control.everything()).map(({ aid }) => aid),
    [creator, flooder],
  );
});

test('control entries that merge two chains again and again add few blocks', (t) => {
  const of = t.mock.method(BlockPool.prototype, 'of');
  const random = new Random(6);
  const control = new ControlLog();
  const flooder = agent(1);
  const first = control.add(fact('create', flooder), []);
  const rows = [[first], [first]];
  for (let i = 0; i < 10_000; i++) {
    const row = rows[i % 2] ?? [];
    row.push(control.add(fact('key', flooder), row.slice(-1)));
  }
  of.mock.resetCalls();
  for (let i = 0; i < 3000; i++)
    control.add(
      fact('key', flooder),
      rows.map((row) => row[row.length - 1 - random.below(100)] ?? first),
    );
  // Each builds all five blocks. Only the blocks at the ends of the chains differ.
  assert.ok(of.mock.callCount() > 4 * 3000);
  const kept = new Set(of.mock.calls.map(({ result }) => result));
  assert.ok(kept.size <= 3000 + 5, `${kept.size}`);
});

test('an entry that merges more control entries than allowed has no position', () => {
  const control = new ControlLog();
  const creator = agent(1);
  control.add(fact('create', creator), []);
  const forks = Array.from({ length: MAX_FRONTIER + 1 }, (_, i) =>
    control.add(fact('invite', creator, agent(i + 2)), [0]),
  );
  assert.equal(control.newest(forks), null);
  assert.deepEqual(control.newest([0, ...forks.slice(1)]), forks.slice(1));
  const united = control.add(fact('key', creator), forks.slice(1));
  assert.deepEqual(control.newest([...forks, united]), [forks[0] ?? 0, united]);
});

test('agents that left do not count towards a full group', () => {
  const control = new ControlLog();
  control.add(fact('create', agent(0)), []);
  for (let i = 1; i < MAX_MEMBERS; i++) control.add(fact('join', agent(i)), [control.size - 1]);
  assert.equal(control.isFull(control.everything(), MAX_MEMBERS), true);
  assert.equal(control.isFull(control.view([control.size - 2]), MAX_MEMBERS), false);
  control.add(fact('leave', agent(5)), [control.size - 1]);
  assert.equal(control.isFull(control.everything(), MAX_MEMBERS), false);
  control.truncate(control.size - 1);
  assert.equal(control.isFull(control.everything(), MAX_MEMBERS), true);
});
