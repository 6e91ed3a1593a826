import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appendHop, forwardedHops, MAX_HOPS } from '../../../src/capabilities/calls/hops.ts';

const [KEY, OTHER] = [1, 2].map((fill) => new Uint8Array(32).fill(fill));
assert.ok(KEY && OTHER);

const request = (...rawHeaders: string[]) => ({ rawHeaders });
const mark = (n: number): string => n.toString(16).padStart(16, '0');

test('a call carries one mark for each agent that it passed, oldest first', () => {
  const first = appendHop(KEY, request('Host', 'x'));
  assert.deepEqual([first[0], first.length], ['Svc-Hops', 2]);
  assert.match(first[1] ?? '', /^[0-9a-f]{16}$/);
  const second = appendHop(OTHER, request(...first));
  assert.equal(second[1]?.split(', ')[0], first[1]);
  assert.equal(second[1]?.split(', ').length, 2);
});

test('a call that returns to an agent is rejected', () => {
  const first = appendHop(KEY, request());
  assert.throws(() => appendHop(KEY, request(...first)), { code: 'loop_detected' });
  const second = appendHop(OTHER, request(...first));
  assert.throws(() => appendHop(KEY, request(...second)), { code: 'loop_detected' });
});

test('a call passes a limited number of agents', () => {
  const marks = (count: number) => Array.from({ length: count }, (_, n) => mark(n)).join(', ');
  assert.equal(appendHop(KEY, request('svc-hops', marks(MAX_HOPS - 1)))[1]?.split(', ').length, MAX_HOPS);
  assert.throws(() => appendHop(KEY, request('svc-hops', marks(MAX_HOPS))), { code: 'loop_detected' });
});

test('a local address passes on valid marks only', () => {
  assert.deepEqual(forwardedHops(request('Host', 'x')), []);
  assert.deepEqual(forwardedHops(request('Svc-Hops', mark(1))), ['Svc-Hops', mark(1)]);
  assert.deepEqual(forwardedHops(request('SVC-HOPS', `${mark(1)},nonsense, ${mark(2)} `, 'Svc-Hops', mark(3))), [
    'Svc-Hops',
    [mark(1), mark(2), mark(3)].join(', '),
  ]);
  for (const bad of ['', 'A'.repeat(16), '0'.repeat(15), '0'.repeat(17)])
    assert.deepEqual(forwardedHops(request('Svc-Hops', bad)), [], bad);
});
