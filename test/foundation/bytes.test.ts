import assert from 'node:assert/strict';
import { test } from 'node:test';
import { equalBytes, freeMemory, fromBase64, fromHex, toBase64, toHex } from '../../src/foundation/bytes.ts';

/** A part of a larger array, as what comes from a socket is one. */
const PART = new Uint8Array([9, 1, 0xab, 9]).subarray(1, 3);

test('arrays are equal where length and content are', () => {
  assert.equal(equalBytes(PART, new Uint8Array([1, 0xab])), true);
  for (const other of [[1, 0xac], [1], [1, 0xab, 0], []]) assert.equal(equalBytes(PART, new Uint8Array(other)), false);
});

test('hex is written in lower case, and read in either', () => {
  assert.equal(toHex(PART), '01ab');
  for (const text of ['01ab', '01AB', '0x01ab', '0X01aB']) assert.deepEqual(fromHex(text), new Uint8Array(PART), text);
  assert.deepEqual([fromHex(''), fromHex('0x')], [new Uint8Array(), new Uint8Array()]);
  for (const text of ['0', '0x0', '0g', '00 ', '000x', 'x00', '0x0x00']) assert.equal(fromHex(text), null, text);
});

test('base64 is written with padding, and read with or without', () => {
  assert.equal(toBase64(PART), 'Aas=');
  for (const text of ['Aas=', 'Aas']) assert.deepEqual(fromBase64(text), new Uint8Array(PART), text);
  assert.deepEqual(fromBase64(''), new Uint8Array());
  for (const text of ['A', 'Aas===', 'Aat', 'A-s=', 'Aa s', '=Aas', 'Aas=x'])
    assert.equal(fromBase64(text), null, text);
});

test('the memory of a chunk is freed only where nobody else has a part of it', () => {
  const whole = new Uint8Array(8);
  freeMemory(whole);
  assert.equal(whole.byteLength, 0);
  const shared = new Uint8Array(8);
  freeMemory(shared.subarray(0, 4));
  freeMemory(shared.subarray(8));
  assert.equal(shared.byteLength, 8);
  freeMemory(new Uint8Array());
  freeMemory(new Uint8Array(new SharedArrayBuffer(8)));
});
