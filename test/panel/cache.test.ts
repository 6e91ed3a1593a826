import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QueryCache, RETRY_MS } from '../../panel/src/lib/cache.ts';

class Clock {
  time = 1_000;
  waiting: { at: number; run: () => void }[] = [];

  now(): number {
    return this.time;
  }

  after(ms: number, run: () => void): () => void {
    const one = { at: this.time + ms, run };
    this.waiting.push(one);
    return () => {
      this.waiting = this.waiting.filter((other) => other !== one);
    };
  }

  /** Advances the clock and lets responses arrive. */
  async pass(ms: number): Promise<void> {
    this.time += ms;
    const due = this.waiting.filter(({ at }) => at <= this.time);
    this.waiting = this.waiting.filter(({ at }) => at > this.time);
    for (const { run } of due) run();
    for (let i = 0; i < 5; i++) await Promise.resolve();
  }
}

test('a query runs immediately and at its interval, once for all watchers, and stops without watchers', async () => {
  const clock = new Clock();
  const cache = new QueryCache(clock);
  let asked = 0;
  const ask = async () => ++asked;
  const ends = [cache.watch('k', ask, 100, () => {}), cache.watch('k', ask, 50, () => {})];
  await clock.pass(0);
  assert.deepEqual(cache.get('k'), { value: 1, failure: undefined, at: 1_000 });
  await clock.pass(50);
  assert.equal(asked, 2);
  for (const end of ends) end();
  await clock.pass(1_000);
  assert.equal(asked, 2);
  assert.equal(cache.get('k').value, 2);
});

test('the last value stays after a failure, and the query is retried after 1, 2, 5 and 10 seconds', async () => {
  const clock = new Clock();
  const cache = new QueryCache(clock);
  let fails = false;
  let asked = 0;
  const ask = async () => {
    asked++;
    if (fails) throw new Error('gone');
    return 'here';
  };
  cache.watch('k', ask, 100, () => {});
  await clock.pass(0);
  fails = true;
  await clock.pass(100);
  assert.equal(cache.get('k').value, 'here');
  assert.equal(cache.get('k').failure?.message, 'gone');
  for (const [i, wait] of [...RETRY_MS, RETRY_MS.at(-1) ?? 0].entries()) {
    await clock.pass(wait - 1);
    assert.equal(asked, 2 + i);
    await clock.pass(1);
    assert.equal(asked, 3 + i);
  }
  fails = false;
  await clock.pass(10_000);
  assert.equal(cache.get('k').failure, undefined);
});

test('a hidden page sends no queries, and sends them immediately when it is visible again', async () => {
  const clock = new Clock();
  const cache = new QueryCache(clock);
  let asked = 0;
  cache.watch(
    'k',
    async () => ++asked,
    100,
    () => {},
  );
  await clock.pass(0);
  cache.see(false);
  await clock.pass(10_000);
  cache.refresh(() => true);
  await clock.pass(10_000);
  assert.equal(asked, 1);
  cache.see(true);
  await clock.pass(0);
  assert.equal(asked, 2);
});

test('a refresh during a query runs it once more', async () => {
  const clock = new Clock();
  const cache = new QueryCache(clock);
  let asked = 0;
  cache.watch(
    'base name 1',
    async () => ++asked,
    0,
    () => {},
  );
  cache.refresh((key) => key.startsWith('base name'));
  cache.refresh((key) => key.startsWith('base name'));
  await clock.pass(0);
  await clock.pass(0);
  assert.equal(asked, 2);
  cache.refresh((key) => key.startsWith('other'));
  await clock.pass(0);
  assert.equal(asked, 2);
});
