import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ATTRIBUTE,
  attributeOf,
  decodeErrorCode,
  decodeStun,
  decodeXorAddress,
  encodeStun,
  encodeXorAddress,
  hasValidIntegrity,
  STUN,
  uint32,
} from '../../../../src/network/reachability/turn/stun.ts';

const TRANSACTION = Uint8Array.from({ length: 12 }, (_, i) => i);
const KEY = new TextEncoder().encode('VOkJxbRl1RmTxUk/WvJxBt');

/** RFC 5769, 2.2: a response with a mapped address and message integrity. */
const VECTOR = new Uint8Array(
  Buffer.from(
    '0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96',
    'hex',
  ),
);

test('the test vector of RFC 5769 is decoded, and its integrity is valid', () => {
  const message = decodeStun(VECTOR);
  assert.ok(message !== null);
  const mapped = attributeOf(message, 0x0020);
  assert.deepEqual(decodeXorAddress(mapped ?? new Uint8Array()), { host: '192.0.2.1', port: 32_853 });
  assert.ok(hasValidIntegrity(VECTOR, KEY));
  const changed = Uint8Array.from(VECTOR);
  changed[30] = 0;
  assert.ok(!hasValidIntegrity(changed, KEY));
  assert.ok(!hasValidIntegrity(VECTOR, Uint8Array.of(1)));
});

test('an encoded message is decoded, with its integrity', () => {
  const message = {
    type: STUN.allocate,
    transaction: TRANSACTION,
    attributes: [
      [ATTRIBUTE.lifetime, uint32(600)],
      [ATTRIBUTE.nonce, Uint8Array.of(1, 2, 3, 4, 5)],
    ] as const,
  };
  assert.deepEqual(decodeStun(encodeStun(message)), message);
  const proven = encodeStun(message, KEY);
  assert.ok(hasValidIntegrity(proven, KEY));
  assert.ok(!hasValidIntegrity(encodeStun(message), KEY), 'a message without integrity is invalid');
});

test('valid and invalid addresses are distinguished', () => {
  const address = { host: '203.0.113.255', port: 65_535 };
  assert.deepEqual(decodeXorAddress(encodeXorAddress(address)), address);
  for (const bytes of [[], [0, 2, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0]])
    assert.equal(decodeXorAddress(Uint8Array.from(bytes)), null);
});

test('error codes are decoded as class and number', () => {
  assert.equal(decodeErrorCode(Uint8Array.of(0, 0, 4, 38)), 438);
  for (const bytes of [undefined, [0, 0, 4], [0, 0, 2, 0], [0, 0, 7, 0], [0, 0, 4, 100]])
    assert.equal(decodeErrorCode(bytes === undefined ? undefined : Uint8Array.from(bytes)), null);
});

test('a truncated, oversized or non-STUN message is rejected', () => {
  const whole = encodeStun({ type: STUN.send, transaction: TRANSACTION, attributes: [[ATTRIBUTE.data, KEY]] });
  for (let length = 0; length < whole.length; length++) assert.equal(decodeStun(whole.subarray(0, length)), null);
  const overlong = Uint8Array.from(whole);
  overlong[23] = 0xff;
  assert.equal(decodeStun(overlong), null);
});
