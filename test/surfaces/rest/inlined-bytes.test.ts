import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeBase64 } from '../../../src/foundation/base64.ts';
import { CollectedBytes } from '../../../src/foundation/collected-bytes.ts';
import { InlinedBytes } from '../../../src/surfaces/rest/context.ts';

function bytesOf(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) & 255);
}

test('a response is the same whether base64 is inlined or part of the text', () => {
  for (const length of [0, 1, 2, 3, 24_575, 24_576, 24_577, 300_001]) {
    const content = bytesOf(length);
    const collected = new CollectedBytes(1 << 20);
    for (let at = 0; at < length; at += 10_000) collected.add(Buffer.from(content.subarray(at, at + 10_000)));
    const inlined = new InlinedBytes(collected);
    const around = { headers: { 'x-ä': ['é "quoted" \u2028 😀'] }, body: '', truncated: false };
    const answer = inlined.into(JSON.stringify({ ...around, body: inlined.mark }));
    assert.equal(
      answer.toString(),
      JSON.stringify({ ...around, body: Buffer.from(content).toString('base64') }),
      `${length} bytes`,
    );
    assert.equal(collected.length, 0, 'the chunks are freed');
  }
});

test('every three bytes have the same characters as in Node', () => {
  const all = Uint8Array.from({ length: 3 * 65_536 }, (_, i) => (i % 3 === 0 ? i >> 8 : i % 3 === 1 ? i / 3 : i / 768));
  const target = Buffer.alloc(4 * 65_536);
  assert.equal(writeBase64(target, 0, all), target.length);
  assert.equal(target.toString('latin1'), Buffer.from(all).toString('base64'));
});

test('base64 is written at the given position, and its end is returned', () => {
  const target = Buffer.alloc(12, 0x2e);
  assert.equal(writeBase64(target, 2, bytesOf(4)), 10);
  assert.equal(target.toString('latin1'), `..${Buffer.from(bytesOf(4)).toString('base64')}..`);
});

test('each response has a different mark', () => {
  const marks = Array.from({ length: 100 }, () => new InlinedBytes(new CollectedBytes(1)).mark);
  assert.equal(new Set(marks).size, marks.length);
});
