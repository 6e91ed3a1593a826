import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { LruCache } from '../../src/foundation/lru-cache.ts';
import { TestClock } from '../support/test-clock.ts';

test('drops the least recently used entry when it is full', () => {
  const cache = new LruCache<string, number>({ maxEntries: 2 });
  cache.set('a', 1);
  cache.set('b', 2);
  assert.equal(cache.get('a'), 1);
  cache.set('c', 3);
  assert.equal(cache.has('b'), false);
  assert.equal(cache.get('a'), 1);
  assert.equal(cache.get('c'), 3);
  assert.equal(cache.size, 2);
});

test('peek does not make an entry recent, set does', () => {
  const cache = new LruCache<string, number>({ maxEntries: 2 });
  cache.set('a', 1);
  cache.set('b', 2);
  assert.equal(cache.peek('a'), 1);
  cache.set('c', 3);
  assert.equal(cache.peek('a'), undefined);
  cache.set('b', 4);
  cache.set('d', 5);
  assert.equal(cache.peek('b'), 4);
  assert.equal(cache.peek('c'), undefined);
});

test('keeps values that are undefined keys or falsy', () => {
  const cache = new LruCache<string | undefined, number>({ maxEntries: 1 });
  cache.set(undefined, 0);
  assert.equal(cache.get(undefined), 0);
  cache.set('x', 1);
  assert.equal(cache.size, 1);
  assert.equal(cache.has(undefined), false);
});

test('forgets an entry at the end of its ttl, counted from set', () => {
  const clock = new TestClock();
  const cache = new LruCache<string, number>({ maxEntries: 2, ttlMs: 100 }, { clock });
  cache.set('a', 1);
  clock.advance(99);
  assert.equal(cache.get('a'), 1);
  clock.advance(1);
  assert.equal(cache.get('a'), undefined);
  assert.equal(cache.delete('a'), false);
  assert.equal(cache.size, 0);
});

test('delete and clear remove entries', () => {
  const cache = new LruCache<string, number>({ maxEntries: 4 });
  cache.set('a', 1);
  cache.set('b', 2);
  assert.equal(cache.delete('a'), true);
  assert.equal(cache.delete('a'), false);
  cache.clear();
  assert.equal(cache.size, 0);
});

test('refuses limits that bound nothing', () => {
  for (const maxEntries of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => new LruCache({ maxEntries }), RangeError);
  }
  assert.throws(() => new LruCache({ maxEntries: 1, ttlMs: 0 }, { clock: new TestClock() }), RangeError);
  assert.throws(() => new LruCache({ maxEntries: 1, ttlMs: 1 }), TypeError);
});

test('behaves like a list that is sorted by use', () => {
  const operation = fc.record({
    kind: fc.constantFrom('get', 'set', 'delete', 'peek'),
    key: fc.integer({ min: 0, max: 6 }),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(operation, { maxLength: 60 }), (maxEntries, operations) => {
      const cache = new LruCache<number, number>({ maxEntries });
      let model: [number, number][] = [];
      for (const [step, { kind, key }] of operations.entries()) {
        const found = model.find(([k]) => k === key);
        const others = model.filter(([k]) => k !== key);
        if (kind === 'get') {
          assert.equal(cache.get(key), found?.[1]);
          if (found !== undefined) model = [...others, found];
        } else if (kind === 'set') {
          cache.set(key, step);
          model = [...others, [key, step] satisfies [number, number]].slice(-maxEntries);
        } else if (kind === 'delete') {
          assert.equal(cache.delete(key), found !== undefined);
          model = others;
        } else {
          assert.equal(cache.peek(key), found?.[1]);
        }
        assert.equal(cache.size, model.length);
      }
      assert.deepEqual(
        cache.values(),
        model.map(([, value]) => value),
      );
    }),
    { seed: 1 },
  );
});
