import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { BinaryReader, readExactly } from '../../../src/network/links/wire.ts';
import { withCode } from '../../support/link-world.ts';

const never = new AbortController().signal;

test('fields are taken off a frame one after another, and none that is not whole', () => {
  const frame = new BinaryReader(Uint8Array.of(0xfe, 0x01, 0x02, 0xff, 0xee, 0xdd, 0xcc, 9));
  assert.deepEqual([frame.u8(), frame.u16(), frame.u32()], [0xfe, 0x0102, 0xffee_ddcc]);
  assert.throws(() => frame.bytes(2), RangeError);
  assert.throws(() => frame.end(), RangeError);
  assert.equal(frame.u8(), 9);
  frame.end();
  assert.throws(() => frame.u8(), RangeError);
  assert.throws(() => new BinaryReader(new Uint8Array(3)).u32(), RangeError);
  assert.throws(() => new BinaryReader(new Uint8Array(1)).u16(), RangeError);
});

test('what is there is taken at once, unless nobody waits for it any more', async () => {
  const stream = new Readable({ read: () => {} });
  stream.push(Uint8Array.of(1, 2, 3));
  assert.deepEqual([...(await readExactly(stream, 2, never))], [1, 2]);
  await assert.rejects(readExactly(stream, 1, AbortSignal.abort()), withCode('cancelled'));
  assert.deepEqual([...(await readExactly(stream, 1, never))], [3]);
  stream.destroy();
  await assert.rejects(readExactly(stream, 1, never), withCode('connect_failed'));
});

test('a stream that ends too early has done so, though it breaks right after', async () => {
  const stream = new Readable({ read: () => {} });
  const reading = assert.rejects(readExactly(stream, 4, never), withCode('protocol_error'));
  // After the reader's own: it has taken the last bytes, and the end is not told yet.
  stream.once('readable', () => stream.destroy(new Error('lost')));
  stream.once('error', () => {});
  stream.push(new Uint8Array(2));
  stream.push(null);
  await reading;
});
