import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { matchesTag, parseContentRange, parseRange } from '../../../src/capabilities/objects/range.ts';

test('one range is accepted, also at its limits', () => {
  assert.deepEqual(parseRange('bytes=0-0', 10), { start: 0, end: 0 });
  assert.deepEqual(parseRange('bytes=9-', 10), { start: 9, end: 9 });
  assert.deepEqual(parseRange('bytes=2-99', 10), { start: 2, end: 9 });
  assert.deepEqual(parseRange('bytes=-3', 10), { start: 7, end: 9 });
  assert.deepEqual(parseRange('bytes=-99', 10), { start: 0, end: 9 });
  assert.deepEqual(parseRange('Bytes= 1-2 ', 10), { start: 1, end: 2 });
});

test('a range beyond the end is unsatisfiable, a malformed one selects the whole', () => {
  for (const header of ['bytes=10-', 'bytes=10-20', 'bytes=-0']) assert.equal(parseRange(header, 10), 'unsatisfiable');
  assert.equal(parseRange('bytes=0-', 0), 'unsatisfiable');
  assert.equal(parseRange('bytes=-5', 0), 'unsatisfiable');
  const odd = [
    'bytes=5-2',
    'bytes=',
    'bytes=-',
    'bytes=0-1,3-4',
    'items=0-1',
    'bytes=a-b',
    'bytes=1-2-3',
    'bytes=0x1-2',
  ];
  for (const header of [undefined, '', ...odd, `bytes=${'9'.repeat(20)}-`])
    assert.equal(parseRange(header, 10), 'whole', String(header));
});

test('every range is inside the object', () => {
  const text = fc.oneof(
    fc.tuple(fc.nat(300), fc.nat(300)).map(([a, b]): string => `bytes=${a}-${b}`),
    fc.nat(300).map((a): string => `bytes=${a}-`),
    fc.nat(300).map((a): string => `bytes=-${a}`),
    fc.string(),
  );
  fc.assert(
    fc.property(text, fc.nat(200), (header: string, size: number) => {
      const range = parseRange(header, size);
      if (typeof range === 'string') return;
      assert.ok(0 <= range.start && range.start <= range.end && range.end < size);
    }),
    { seed: 7 },
  );
});

test('a Content-Range is accepted in one form only', () => {
  assert.deepEqual(parseContentRange('bytes 2-4/10'), { start: 2, end: 4, size: 10 });
  for (const header of [undefined, 'bytes 4-2/10', 'bytes 2-10/10', 'bytes */10', 'bytes 2-4/*', ' bytes 2-4/10'])
    assert.equal(parseContentRange(header), null);
});

test('tags in a list are matched, also weak ones', () => {
  assert.ok(matchesTag('"a", W/"b"', '"b"'));
  assert.ok(matchesTag('*', '"b"'));
  assert.ok(!matchesTag('"ab"', '"b"'));
  assert.ok(!matchesTag(undefined, '"b"'));
});
