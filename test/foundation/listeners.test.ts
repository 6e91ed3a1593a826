import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Listeners } from '../../src/foundation/listeners.ts';

test('notifies listeners in order, once each, until they unsubscribe', () => {
  const heard: string[] = [];
  const listeners = new Listeners<[string, number]>();
  const first = (name: string, count: number): void => void heard.push(`first ${name} ${count}`);
  const forget = listeners.add(first);
  listeners.add(first);
  listeners.add((name) => void heard.push(`second ${name}`));
  listeners.notify('a', 1);
  forget();
  listeners.notify('b', 2);
  assert.deepEqual(heard, ['first a 1', 'second a', 'second b']);
});

test('the exception of a listener reaches the notifier after the other listeners were called', () => {
  const listeners = new Listeners<[]>();
  let calls = 0;
  listeners.add(() => {
    throw new Error('no');
  });
  listeners.add(() => {
    calls++;
  });
  assert.throws(() => listeners.notify(), /no/);
  assert.equal(calls, 1);
});
