import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { lentSource, Quota, type QuotaHolder, type QuotaShare } from '../../src/foundation/quota.ts';

const stranger = (node: string, source: string, key?: string): QuotaHolder =>
  key === undefined ? { node, source, named: false } : { key, node, source, named: false };
const friend = (node: string, source = '203.0.113.9'): QuotaHolder => ({ node, source, named: true });

/** Takes shares and records evictions. */
function recorder(quota: Quota): {
  readonly take: (name: string, holder: QuotaHolder, amount?: number) => QuotaShare | null;
  readonly evicted: string[];
} {
  const evicted: string[] = [];
  return {
    evicted,
    take: (name, holder, amount = 1) => quota.take(holder, { amount, onEvict: () => evicted.push(name) }),
  };
}

test('each level has a limit, and the full level is named', () => {
  const quota = new Quota({ perKey: 1, perNode: 2, perSource: 3, perNetwork: 4, total: 5 });
  const take = (holder: QuotaHolder): string | null => {
    const lacking = quota.fullLevel(holder);
    assert.equal(quota.take(holder) === null, lacking !== null);
    return lacking;
  };
  assert.equal(take(stranger('n1', '198.51.100.1', 'k1')), null);
  assert.equal(take(stranger('n1', '198.51.100.1', 'k1')), 'key');
  assert.equal(take(stranger('n1', '198.51.100.1', 'k2')), null);
  assert.equal(take(stranger('n1', '198.51.100.1', 'k3')), 'node');
  assert.equal(take(stranger('n2', '198.51.100.1', 'k3')), null);
  assert.equal(take(stranger('n3', '198.51.100.1', 'k4')), 'source');
  assert.equal(take(stranger('n3', '198.51.100.2', 'k4')), null);
  assert.equal(take(stranger('n4', '198.51.100.3', 'k5')), 'network');
  assert.equal(take(stranger('n4', '198.51.101.3', 'k5')), null);
  assert.equal(take(stranger('n5', '192.0.2.1', 'k6')), 'total');
  assert.equal(quota.used, 5);
  assert.equal(quota.usedBy('n1'), 2);
});

test('an IPv6 /64 is one source and a /48 one network', () => {
  const quota = new Quota({ perSource: 1, perNetwork: 2, total: 10 });
  assert.notEqual(quota.take(stranger('n1', '2001:db8:1:1::1')), null);
  assert.equal(quota.fullLevel(stranger('n2', '2001:db8:1:1:ffff::2')), 'source');
  assert.notEqual(quota.take(stranger('n2', '2001:db8:1:2::1')), null);
  assert.equal(quota.fullLevel(stranger('n3', '2001:db8:1:3::1')), 'network');
  assert.equal(quota.fullLevel(stranger('n3', '2001:db8:2:3::1')), null);
});

test('sources without a known address share one network', () => {
  const quota = new Quota({ perSource: 1, perNetwork: 2, total: 10 });
  assert.notEqual(quota.take(stranger('n1', 'node 01')), null);
  assert.notEqual(quota.take(stranger('n2', 'node 02')), null);
  assert.equal(quota.fullLevel(stranger('n3', 'node 03')), 'network');
});

test('nodes on this machine have no limit by source, and programs on it are no strangers', () => {
  const quota = new Quota({ perSource: 1, perNetwork: 1, total: 4, reserved: 1 });
  for (const node of ['n1', 'n2', 'n3']) assert.notEqual(quota.take(stranger(node, '127.0.0.1')), null);
  assert.equal(quota.fullLevel(stranger('n4', '127.0.0.1')), 'total');
  assert.notEqual(quota.take({ node: 'here', source: null, named: true }), null);
});

test('strangers never use the reserved part, and known holders can use it completely', () => {
  const quota = new Quota({ total: 4, reserved: 2 });
  assert.notEqual(quota.take(stranger('n1', '198.51.100.1')), null);
  assert.notEqual(quota.take(stranger('n2', '198.51.101.1')), null);
  assert.equal(quota.take(stranger('n3', '198.51.102.1')), null);
  assert.notEqual(quota.take(friend('f')), null);
  assert.notEqual(quota.take(friend('f')), null);
  assert.equal(quota.take(friend('f')), null);
});

test('a named holder is not held to the limits of its source, which strangers have used up', () => {
  const quota = new Quota({ perSource: 1, perNetwork: 1, total: 9 });
  assert.notEqual(quota.take(stranger('n1', '203.0.113.9')), null);
  assert.notEqual(quota.take(friend('f', '203.0.113.9')), null);
  assert.equal(quota.fullLevel(stranger('n2', '203.0.113.9')), 'source');
});

test('a named holder evicts the stranger that holds most, and there the share that was idle longest', () => {
  const quota = new Quota({ total: 4 });
  const { take, evicted } = recorder(quota);
  take('small', stranger('n1', '198.51.100.1'));
  const used = take('large 1', stranger('n2', '192.0.2.1'));
  take('large 2', stranger('n3', '192.0.2.2'));
  take('large 3', stranger('n3', '192.0.2.2'));
  used?.touch();
  assert.notEqual(take('friend', friend('f')), null);
  assert.deepEqual(evicted, ['large 2']);
  assert.notEqual(take('friend', friend('f')), null);
  assert.equal(evicted.length, 2);
  assert.notEqual(evicted[1], 'small');
  assert.equal(quota.used, 4);
});

test('on a full node a named holder evicts the idlest stranger of that node, but no named holder and no share of its own', () => {
  const quota = new Quota({ perNode: 3, total: 9 });
  const { take, evicted } = recorder(quota);
  const named = { ...friend('n1'), key: 'ada' };
  take('elsewhere', stranger('n2', '203.0.113.9', 'k0'));
  take('as a stranger', { ...named, named: false });
  const used = take('used', stranger('n1', '203.0.113.9', 'k1'));
  take('idle', stranger('n1', '203.0.113.9', 'k2'));
  used?.touch();
  assert.equal(take('stranger', stranger('n1', '203.0.113.9', 'k3')), null);
  assert.notEqual(take('ada 1', named), null);
  assert.notEqual(take('ada 2', named), null);
  assert.deepEqual(evicted, ['idle', 'used']);
  assert.equal(take('ada 3', named), null);
  assert.equal(quota.usedBy('n1'), 3);
});

test('a stranger evicts only one that holds more than it would, at the level that is full', () => {
  const quota = new Quota({ perNetwork: 4, total: 6 });
  const { take, evicted } = recorder(quota);
  for (const i of [1, 2, 3, 4]) take(`crowd ${i}`, stranger('n1', '192.0.2.1'));
  assert.notEqual(take('neighbour', stranger('n2', '192.0.2.7')), null, 'its network is full of another source');
  assert.deepEqual(evicted, ['crowd 1']);
  take('a', stranger('a', '198.51.100.1'));
  take('b', stranger('b', '198.51.101.1'));
  assert.notEqual(take('c', stranger('c', '198.51.102.1')), null, 'the whole is full of one network');
  assert.deepEqual(evicted, ['crowd 1', 'crowd 2']);
  assert.equal(take('more', stranger('n1', '192.0.2.1')), null, 'the largest holder evicts no other holder');
  assert.deepEqual(evicted, ['crowd 1', 'crowd 2']);
});

test('in a full network a larger source loses a share to a newcomer', () => {
  const quota = new Quota({ total: 4 });
  const { take, evicted } = recorder(quota);
  for (const i of [1, 2, 3]) take(`crowd ${i}`, stranger('n1', '192.0.2.1'));
  take('other', stranger('n2', '198.51.100.1'));
  assert.notEqual(take('neighbour', stranger('n3', '192.0.2.9')), null);
  assert.deepEqual(evicted, ['crowd 1']);
});

test('shares without a way to end them stay', () => {
  const quota = new Quota({ total: 2 });
  quota.take(stranger('n1', '192.0.2.1'));
  quota.take(stranger('n1', '192.0.2.1'));
  assert.equal(quota.take(friend('f')), null);
});

test('a holder that has used up its own limit loses its idlest share if its own yields', () => {
  const quota = new Quota({ perKey: 2, total: 9 }, { ownYields: true });
  const { take, evicted } = recorder(quota);
  const first = take('first', friend('f'));
  take('second', friend('f'));
  first?.touch();
  assert.notEqual(take('third', friend('f')), null);
  assert.deepEqual(evicted, ['second']);
});

test('shares grow and shrink in units, and release once', () => {
  const quota = new Quota({ perNode: 10, total: 15 });
  const a = quota.take(stranger('a', '192.0.2.1'), { amount: 0 });
  assert.ok(a);
  assert.equal(a.grow(10), true);
  assert.equal(a.grow(1), false);
  a.shrink(4);
  assert.equal(a.amount, 6);
  assert.equal(a.grow(4), true);
  const b = quota.take(stranger('b', '198.51.100.1'), { amount: 6 });
  assert.equal(b, null, 'the largest share cannot be evicted');
  a.release();
  a.release();
  assert.equal(a.grow(1), false);
  a.shrink(3);
  assert.equal(quota.used, 0);
  assert.equal(quota.usedBy('a'), 0);
});

test('several shares are evicted for a large one', () => {
  const quota = new Quota({ total: 10 });
  const { take, evicted } = recorder(quota);
  for (let i = 0; i < 10; i++) take(`${i}`, stranger('n', '192.0.2.1'));
  const late = take('friend', friend('f'), 1);
  assert.equal(late?.grow(3), true);
  assert.deepEqual(evicted, ['0', '1', '2', '3']);
});

test('limits may change while shares are held', () => {
  let total = 2;
  const quota = new Quota(() => ({ total }));
  assert.notEqual(quota.take(friend('f')), null);
  total = 1;
  assert.equal(quota.take(friend('f')), null);
  total = 2;
  assert.notEqual(quota.take(friend('f')), null);
});

test('for any sequence no level is exceeded, sums match, and small strangers keep their shares', () => {
  const limits = { perKey: 4, perNode: 6, perSource: 8, perNetwork: 12, total: 20, reserved: 5 };
  const holder = fc.record({
    key: fc.constantFrom('k1', 'k2', 'k3'),
    node: fc.constantFrom('n1', 'n2', 'n3', 'n4', 'n5'),
    source: fc.constantFrom('192.0.2.1', '192.0.2.2', '198.51.100.1', '2001:db8::1', '127.0.0.1', 'node 7'),
    named: fc.boolean(),
  });
  const step = fc.record({
    what: fc.constantFrom('take', 'take', 'take', 'grow', 'shrink', 'release', 'touch'),
    holder,
    amount: fc.integer({ min: 0, max: 5 }),
    at: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.boolean(), (steps, ownYields) => {
      const quota = new Quota(limits, { ownYields });
      const live = new Map<QuotaShare, QuotaHolder>();
      const sum = (of: (holder: QuotaHolder) => boolean): number =>
        [...live].reduce((all, [share, who]) => all + (of(who) ? share.amount : 0), 0);
      for (const { what, holder: who, amount, at } of steps) {
        const some = [...live.keys()][at % Math.max(1, live.size)];
        if (what === 'take') {
          let evicted = (): void => {};
          const share = quota.take(who, { amount, onEvict: () => evicted() });
          if (share === null) continue;
          evicted = () => assert.equal(live.delete(share), true);
          live.set(share, who);
        } else if (some === undefined) continue;
        else if (what === 'grow') some.grow(amount);
        else if (what === 'shrink') some.shrink(amount);
        else if (what === 'touch') some.touch();
        else {
          some.release();
          live.delete(some);
        }
        assert.equal(
          quota.used,
          sum(() => true),
        );
        assert.ok(quota.used <= limits.total);
        assert.ok(sum(({ named }) => !named) <= limits.total - limits.reserved);
        for (const node of ['n1', 'n2', 'n3', 'n4', 'n5']) {
          assert.equal(
            quota.usedBy(node),
            sum((one) => one.node === node),
          );
          assert.ok(quota.usedBy(node) <= limits.perNode);
        }
        assert.ok(sum(({ named, source }) => !named && source === '192.0.2.1') <= limits.perSource);
        assert.ok(sum(({ named, source }) => !named && source?.startsWith('192.0.2.') === true) <= limits.perNetwork);
      }
      for (const share of live.keys()) share.release();
      assert.equal(quota.used, 0);
    }),
  );
});

test('the lent ports of all helpers are one network, with limits of their own', () => {
  const quota = new Quota({ perSource: 4, perNetwork: 8, perLentSource: 2, perLentNetwork: 5, total: 100 });
  const taken = (source: string): number => {
    let count = 0;
    while (quota.take(stranger(`${source} ${count}`, source)) !== null) count++;
    return count;
  };
  assert.deepEqual([taken('198.51.100.1'), taken('198.51.100.2'), taken('198.51.100.3')], [4, 4, 0]);
  assert.deepEqual(
    ['20.1.1.1', '30.1.1.1', '40.1.1.1'].map((host) => taken(lentSource(host))),
    [2, 2, 1],
  );
  const usual = new Quota({ perSource: 4, perNetwork: 6, total: 100 });
  for (let i = 0; i < 10; i++) usual.take(stranger(`n${i}`, lentSource(`${20 + i}.1.1.1`)));
  assert.equal(usual.used, 6, 'by default, as for another network');
});

test('a share grows and shrinks, and cannot exceed the quota', () => {
  const quota = new Quota({ total: 10 });
  const share = quota.share(stranger('1', '192.0.2.1'), () => assert.fail());
  assert.deepEqual([share.set(4), share.set(10), share.set(11)], [true, true, false]);
  assert.deepEqual([share.amount, quota.used], [10, 10]);
  assert.deepEqual([share.set(3), quota.used], [true, 3]);
  assert.deepEqual([share.set(0), share.amount, quota.used], [true, 0, 0]);
});

test('one that holds nothing is never evicted; one that was holds nothing, and may take again', () => {
  const quota = new Quota({ total: 10 });
  const evicted: string[] = [];
  const share = (node: string): QuotaShare => quota.share(stranger(node, `192.0.2.${node}`), () => evicted.push(node));
  const [empty, largest, small] = [share('1'), share('2'), share('3')];
  empty.set(5);
  empty.set(0);
  largest.set(9);
  assert.equal(small.set(2), true);
  assert.deepEqual(evicted, ['2']);
  assert.deepEqual([largest.amount, quota.used], [0, 2]);
  assert.equal(largest.set(8), true);
  assert.equal(quota.used, 10);
});
