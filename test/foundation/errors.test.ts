import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERRORS, isErrorCode, noSuchAgent, SvcError } from '../../src/foundation/errors.ts';

test('an error has the message of its catalog entry unless another is given', () => {
  const plain = new SvcError('rate_limited');
  assert.deepEqual(
    [plain.name, plain.code, plain.status, plain.exit, plain.message, plain.details, plain.cause],
    ['SvcError', 'rate_limited', 429, 1, ERRORS.rate_limited.message, undefined, undefined],
  );
  assert.equal(Object.hasOwn(plain, 'cause'), false);
  const cause = new Error('why');
  const reported = new SvcError('operational_key_mismatch', { message: 'No.', details: { a: 1 }, cause, status: 409 });
  assert.deepEqual(
    [reported.message, reported.details, reported.cause, reported.status],
    ['No.', { a: 1 }, cause, 409],
  );
});

test('uses standard HTTP statuses and shell exit codes', () => {
  for (const [code, { status, exit, message, otherStatuses }] of Object.entries(ERRORS)) {
    for (const one of [status, ...otherStatuses]) assert.ok(one >= 400 && one < 600, code);
    assert.ok(exit >= 1 && exit <= 5, code);
    assert.match(message, /^[A-Z].*\.$/s, code);
  }
});

test('knows its own codes, and no names of other things', () => {
  for (const code of Object.keys(ERRORS)) assert.equal(isErrorCode(code), true, code);
  for (const code of ['', 'nothing', 'toString', 'constructor', '__proto__'])
    assert.equal(isErrorCode(code), false, code);
});

test('an agent that is not here is named', () => {
  const error = noSuchAgent('aid1x');
  assert.deepEqual(
    [error.code, error.message, error.details],
    ['not_found', 'This agent is not registered here.', { aid: 'aid1x' }],
  );
});
