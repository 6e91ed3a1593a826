/** Error responses of the called daemon, and how the caller's daemon interprets them. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { daemonErrorResponse, errorFromResponse } from '../../../src/capabilities/calls/error-response.ts';
import { SvcError } from '../../../src/foundation/errors.ts';

function answer(headers: Record<string, string>): SvcError | null {
  const message = new IncomingMessage(new Socket());
  Object.assign(message.headers, headers);
  return errorFromResponse(message);
}

test('an error response has status, code and length, and Retry-After only if there is a wait', () => {
  const { status, headers, body } = daemonErrorResponse(new SvcError('access_denied', { message: 'Nö.' }));
  assert.equal(status, 403);
  assert.deepEqual(JSON.parse(body), { error: 'access_denied', message: 'Nö.' });
  const fixed = ['Svc-Error', 'access_denied', 'Content-Type', 'application/json', 'Content-Length'];
  assert.deepEqual(headers, [...fixed, String(Buffer.byteLength(body))]);
  const limited = daemonErrorResponse(new SvcError('rate_limited', { details: { retry_after_s: 7 } }));
  assert.deepEqual(limited.headers.slice(-2), ['Retry-After', '7']);
});

test('only known codes and a valid Retry-After are accepted from a called daemon', () => {
  assert.equal(answer({ 'retry-after': '7' }), null);
  assert.equal(answer({ 'svc-error': 'internal' })?.code, 'protocol_error');
  assert.equal(answer({ 'svc-error': 'no_inbound' })?.code, 'no_inbound');
  const wait = (text: string) => answer({ 'svc-error': 'rate_limited', 'retry-after': text })?.details;
  assert.deepEqual(wait('1.5'), { retry_after_s: 2 });
  assert.deepEqual(wait('86400'), { retry_after_s: 86_400 });
  for (const text of ['0', '-1', '86401', 'soon']) assert.equal(wait(text), undefined, text);
});
