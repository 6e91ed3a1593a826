import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HELPER_FAILURES } from '../../../../src/network/transport/borrowing.ts';
import { observedResponse, TLS_OBSERVATIONS, tlsFailure } from '../../../../src/network/transport/tls/failure.ts';

const FACTS = {
  ...{ to: '203.0.113.1:443', proxy: '10.0.0.1:3128', setBy: 'ALL_PROXY' },
  ...{ status: 418, code: 'EXAMPLE', scheme: 'example' },
};

test('every observation has a cause and a text of whole sentences', () => {
  for (const observation of TLS_OBSERVATIONS) {
    const { failure, message, details } = tlsFailure(observation, FACTS);
    assert.ok(HELPER_FAILURES.includes(failure), observation);
    assert.deepEqual(details, { cause: failure });
    assert.match(message, /^\S.*\.$/, observation);
    assert.doesNotMatch(message, /undefined|\(0\)|\(\)/, observation);
  }
});

test('a response to the upgrade shows which machine refuses, and why', () => {
  const observed = (status: number, headers: Readonly<Record<string, string>> = {}) =>
    observedResponse(status, (name) => headers[name]);
  assert.equal(observed(302), 'the upgrade gets a redirect or 511');
  assert.equal(observed(404), 'a web server answers the upgrade');
  assert.equal(observed(404, { Via: '1.1 proxy' }), 'a proxy answers the upgrade');
  assert.equal(observed(426), 'a proxy answers the upgrade');
  assert.equal(observed(502, { Via: '1.1 proxy' }), 'an inspecting proxy cannot connect');
  const squid = (status: number, error: string) => observed(status, { 'X-Squid-Error': error });
  assert.equal(squid(503, 'ERR_SECURE_CONNECT_FAIL 71'), 'an inspecting proxy refuses the certificate');
  assert.equal(squid(403, 'ERR_ACCESS_DENIED 0'), 'an inspecting proxy denies access');
  assert.equal(squid(503, 'ERR_DNS_FAIL 0'), 'an inspecting proxy cannot connect');
});
