import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { CollectedBytes, encodeLongText } from '../../src/foundation/collected-bytes.ts';

const MAX_BYTES = 1024 * 1024;

/** A chunk with its own memory, like a chunk of the HTTP parser. */
function chunk(length: number): Uint8Array {
  return new Uint8Array(randomBytes(length));
}

for (const lengths of [[], [0], [5], [3, 4], [100_000, 100_000, 1], [131_072], [131_073], [700_000, 400_000, 9]])
  test(`chunks of ${lengths.join(', ')} bytes are put together, up to what is kept`, () => {
    const chunks = lengths.map(chunk);
    const all = Buffer.concat(chunks);
    const collected = new CollectedBytes(MAX_BYTES);
    let came = 0;
    for (const one of chunks) {
      came += one.length;
      assert.equal(collected.add(one), came <= MAX_BYTES);
    }
    assert.equal(collected.length, Math.min(all.length, MAX_BYTES));
    assert.ok(all.subarray(0, MAX_BYTES).equals(collected.bytes()));
  });

test('large buffers are freed immediately: chunks when they are copied, the rest by free', () => {
  const collected = new CollectedBytes(MAX_BYTES);
  const chunks = [chunk(100_000), chunk(100_000), chunk(100_000)];
  for (const one of chunks) collected.add(one);
  assert.deepEqual(
    chunks.map(({ length }) => length),
    [0, 0, 0],
  );
  const bytes = collected.bytes();
  assert.equal(bytes.length, 300_000);
  collected.free();
  assert.deepEqual([bytes.length, collected.length], [0, 0]);
});

test('transfers a long text as UTF-8, which releases it', () => {
  const text = 'straße 🙂 '.repeat(50_000);
  const bytes = encodeLongText(text);
  assert.ok(bytes.equals(Buffer.from(text)));
  bytes.buffer.transfer(0);
  assert.equal(bytes.length, 0);
});
