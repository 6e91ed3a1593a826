import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AGREEMENT_ANSWER_BYTES,
  type ConnectionSeals,
  connectionSeals,
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeRequest,
  MAX_AGREEMENT_REQUEST_BYTES,
  newRequest,
} from '../../../../src/network/transport/lan-tcp/greeting.ts';

const SECRET = new Uint8Array(32).fill(1);
const SALT = new Uint8Array(32).fill(2);

test('a decoded request equals the encoded one, for every kind of address', () => {
  for (const host of [
    '127.0.0.1',
    '192.168.178.200',
    '::1',
    'fe80::1%eth0',
    'fd00:1111:2222:3333:4444:5555:6666:7777',
  ]) {
    const request = newRequest(host);
    const bytes = encodeRequest(request);
    assert.ok(bytes.length <= MAX_AGREEMENT_REQUEST_BYTES);
    const decoded = decodeRequest(bytes) ?? assert.fail();
    assert.equal(decoded.host, host);
    assert.deepEqual(Buffer.from(decoded.secret), Buffer.from(request.secret));
  }
  assert.notDeepEqual(newRequest('::1').secret, newRequest('::1').secret);
});

test('an invalid request is not decoded', () => {
  for (const host of ['', 'localhost', '127.0.0.1 ', '127.0.0.01', '127.1', '1.2.3.4:80', '[::1]', '::1\0', '\u00ff'])
    assert.equal(decodeRequest(encodeRequest({ secret: SECRET, host })), null, host);
  for (const length of [0, 1, 31, 32]) assert.equal(decodeRequest(new Uint8Array(length).fill(0x31)), null);
  assert.equal(decodeRequest(new Uint8Array(MAX_AGREEMENT_REQUEST_BYTES).fill(0x31)), null);
});

test('a decoded secret is a copy', () => {
  const bytes = encodeRequest({ secret: SECRET, host: '::1' });
  const decoded = decodeRequest(bytes) ?? assert.fail();
  bytes.fill(9);
  assert.deepEqual(decoded, { secret: SECRET, host: '::1' });
});

test('a decoded answer equals the encoded one', () => {
  for (const port of [0, 1, 255, 256, 65_535]) {
    const name = new Uint8Array(16).fill(port & 0xff);
    const bytes = encodeAnswer({ port, name });
    assert.equal(bytes.length, AGREEMENT_ANSWER_BYTES);
    const decoded = decodeAnswer(new Uint8Array(bytes));
    assert.equal(decoded.port, port);
    assert.deepEqual(Buffer.from(decoded.name), Buffer.from(name));
  }
});

/** Whether the second end opens records of the first. */
function opens(from: ConnectionSeals, to: ConnectionSeals): boolean {
  try {
    return [...to.opener.feed(from.sealer.seal('data', Buffer.from('hello')))].length === 1;
  } catch {
    return false;
  }
}

test('each end opens records of the other end, and no others', () => {
  const connects = () => connectionSeals(SECRET, SALT, 'connects');
  const accepts = () => connectionSeals(SECRET, SALT, 'accepts');
  assert.ok(opens(connects(), accepts()));
  assert.ok(opens(accepts(), connects()));
  assert.ok(!opens(connects(), connects()));
  assert.ok(!opens(accepts(), accepts()));
});

test('the keys depend on every byte of the secret and the salt', () => {
  const here = () => connectionSeals(SECRET, SALT, 'connects');
  for (let at = 0; at < 32; at++) {
    const changed = (bytes: Uint8Array): Uint8Array => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
    assert.ok(!opens(here(), connectionSeals(changed(SECRET), SALT, 'accepts')));
    assert.ok(!opens(here(), connectionSeals(SECRET, changed(SALT), 'accepts')));
  }
});
