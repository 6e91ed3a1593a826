import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, timeOf, timeOrNull } from '../../../src/operations/handlers/values.ts';

test('only standard base64 is accepted, and an error names the member without its value', () => {
  assert.deepEqual([...bytesOf('AP8+Pw==', 'body')], [0, 255, 62, 63]);
  for (const text of ['AP8-Pw==', 'sec ret!', '====', 'AP8+Px=='])
    assert.throws(() => bytesOf(text, 'payload'), {
      code: 'invalid_request',
      message: 'payload is not standard base64.',
      details: { in: 'body', path: '/payload' },
    });
});

test('times are Unix milliseconds inside and ISO 8601 outside, and null stays null', () => {
  assert.equal(timeOf('2026-02-03T00:00:00.500Z'), Date.UTC(2026, 1, 3, 0, 0, 0, 500));
  assert.equal(timeOf(undefined), undefined);
  assert.equal(timeOrNull(Date.UTC(2026, 1, 3)), '2026-02-03T00:00:00.000Z');
  assert.deepEqual([timeOrNull(0), timeOrNull(null)], ['1970-01-01T00:00:00.000Z', null]);
});
