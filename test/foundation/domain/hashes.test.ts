import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSha256 } from '../../../src/foundation/domain/objects.ts';

test('a hash is 64 lower-case hex characters and nothing else', () => {
  assert.ok(isSha256('0123456789abcdef'.repeat(4)));
  for (const wrong of ['', 'a'.repeat(63), 'a'.repeat(65), 'A'.repeat(64), 'g'.repeat(64), `${'a'.repeat(64)}\n`])
    assert.ok(!isSha256(wrong), JSON.stringify(wrong));
});
