import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { readBytes } from '../../../src/surfaces/rest/json-body.ts';
import { errorResponse, publicError } from '../../../src/surfaces/rest/response.ts';

test('an unexpected error is reported and not shown', () => {
  const reported: unknown[] = [];
  const unexpected = (error: unknown): void => void reported.push(error);
  const meant = new SvcError('not_found');
  assert.equal(publicError(meant, unexpected), meant);
  assert.equal(publicError(new DOMException('gone', 'AbortError'), unexpected).code, 'cancelled');
  assert.deepEqual(reported, []);
  const faults = [new Error('secret'), new SvcError('internal', { message: 'secret' }), 'secret', undefined];
  for (const fault of faults) {
    const { code, message, details } = publicError(fault, unexpected);
    assert.deepEqual([code, details], ['internal', undefined]);
    assert.doesNotMatch(message, /secret/);
  }
  assert.deepEqual(reported, faults);
});

test('an error sets the headers that HTTP requires', () => {
  const headers = (error: SvcError) => errorResponse(error).headers;
  const { 'content-type': type } = headers(new SvcError('not_found'));
  assert.equal(type, 'application/json; charset=utf-8');
  assert.equal(headers(new SvcError('unauthorized'))['www-authenticate'], 'Bearer realm="svcd"');
  const waits = [2.1, 0, undefined].map(
    (wait) => headers(new SvcError('rate_limited', { details: { retry_after_s: wait } }))['retry-after'],
  );
  assert.deepEqual(waits, ['3', '1', '1']);
  assert.equal(headers(new SvcError('method_not_allowed', { details: { allow: 'GET' } }))['allow'], 'GET');
});

test('a body is read up to its limit, and no further', async () => {
  let given = 0;
  async function* body(): AsyncGenerator<Buffer> {
    for (const text of ['ab', 'cd', 'ef']) {
      given++;
      yield Buffer.from(text);
    }
  }
  assert.equal(String(await readBytes(body(), 6)), 'abcdef');
  given = 0;
  await assert.rejects(readBytes(body(), 3), { code: 'too_large', details: { limit_bytes: 3 } });
  assert.equal(given, 2);
});
