import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toBase64 } from '../../src/foundation/base64.ts';
import {
  compareBytes,
  equalBytes,
  freeMemory,
  fromBase64,
  fromHex,
  plainText,
  toHex,
} from '../../src/foundation/bytes.ts';

/** A view of a larger array, like data from a socket. */
const PART = new Uint8Array([9, 1, 0xab, 9]).subarray(1, 3);
const bytes = fc.uint8Array({ maxLength: 100 });

test('arrays with equal length and content are equal', () => {
  assert.equal(equalBytes(PART, new Uint8Array([1, 0xab])), true);
  for (const other of [[1, 0xac], [1], [1, 0xab, 0], []]) assert.equal(equalBytes(PART, new Uint8Array(other)), false);
});

test('detects a difference of one bit at any position and length', () => {
  for (const length of [32, 127, 128, 129, 1001]) {
    const whole = new Uint8Array(length + 1).fill(0x5a);
    const a = whole.subarray(1);
    for (let at = 0; at < length; at++) {
      const b = Uint8Array.from(a);
      assert.equal(equalBytes(a, b), true);
      b[at] = 0x5b;
      assert.equal(equalBytes(a, b), false, `${at} of ${length}`);
    }
  }
});

test('bytes have the order, the hex and the base64 that Node gives them', () => {
  fc.assert(
    fc.property(bytes, bytes, (a, b) => {
      assert.equal(Math.sign(compareBytes(a, b)), Buffer.compare(a, b));
      assert.equal(equalBytes(a, b), Buffer.compare(a, b) === 0);
      assert.ok(equalBytes(a, Uint8Array.from(a)));
      const [hex, base64] = [Buffer.from(a).toString('hex'), Buffer.from(a).toString('base64')];
      assert.deepEqual([toHex(a), fromHex(hex)], [hex, a]);
      assert.deepEqual([toBase64(a), fromBase64(base64)], [base64, a]);
    }),
  );
});

test('hex is written in lower case, and read in either', () => {
  assert.equal(toHex(PART), '01ab');
  for (const text of ['01ab', '01AB', '0x01ab', '0X01aB']) assert.deepEqual(fromHex(text), new Uint8Array(PART), text);
  assert.deepEqual([fromHex(''), fromHex('0x')], [new Uint8Array(), new Uint8Array()]);
  for (const text of ['0', '0x0', '0g', '00 ', ' 00', '00\n', '０0', '000x', 'x00', '0x0x00'])
    assert.equal(fromHex(text), null, text);
});

test('base64 is written with padding, and read with or without', () => {
  assert.equal(toBase64(PART), 'Aas=');
  for (const text of ['Aas=', 'Aas']) assert.deepEqual(fromBase64(text), new Uint8Array(PART), text);
  assert.deepEqual(fromBase64(''), new Uint8Array());
  for (const text of ['A', 'Aas===', 'Aat', 'A-s=', 'Aa s', '=Aas', 'Aas=x', '===', 'A==='])
    assert.equal(fromBase64(text), null, text);
});

/** Canonical base64: Node encodes it to the same text, except for padding. */
function canonical(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  const decoded = Buffer.from(text, 'base64');
  return decoded.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '') ? Uint8Array.from(decoded) : null;
}

test('of all texts only the one base64 of some bytes is read', () => {
  const letters = fc.constantFrom('A', 'B', 'Q', 'R', 'g', '9', '+', '/', '=', '-', '_', ' ', '\n', 'é');
  fc.assert(
    fc.property(fc.string({ unit: letters, maxLength: 9 }), (text) => {
      assert.deepEqual(fromBase64(text), canonical(text), JSON.stringify(text));
    }),
    { numRuns: 5000 },
  );
});

test('the memory of a chunk is freed only if nothing shares it', () => {
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

test('bytes are text if they are UTF-8 without control characters', () => {
  for (const text of ['a', 'Grüße\n\t', '\ufeffmark']) assert.equal(plainText(Buffer.from(text)), text);
  for (const no of [[], [0xff], [0x61, 0], [0x1b, 0x5b]]) assert.equal(plainText(Uint8Array.from(no)), undefined);
});
