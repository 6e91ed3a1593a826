import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { BinaryReader, readExactly } from '../../../src/network/peers/wire.ts';
import { withCode } from '../../support/link-world.ts';

const never = new AbortController().signal;

test('fields are read from a frame in order, and an incomplete field is an error', () => {
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

test('buffered bytes are read immediately, unless the read was aborted', async () => {
  const stream = new Readable({ read: () => {} });
  stream.push(Uint8Array.of(1, 2, 3));
  assert.deepEqual([...(await readExactly(stream, 2, never))], [1, 2]);
  await assert.rejects(readExactly(stream, 1, AbortSignal.abort()), withCode('cancelled'));
  assert.deepEqual([...(await readExactly(stream, 1, never))], [3]);
  stream.destroy();
  await assert.rejects(readExactly(stream, 1, never), withCode('connect_failed'));
});

test('a stream that ends too early reports this, even if it breaks right after', async () => {
  const stream = new Readable({ read: () => {} });
  const reading = assert.rejects(readExactly(stream, 4, never), withCode('protocol_error'));
  // Runs after the reader's own listener, which has read the last bytes before the end is reported.
  stream.once('readable', () => stream.destroy(new Error('lost')));
  stream.once('error', () => {});
  stream.push(new Uint8Array(2));
  stream.push(null);
  await reading;
});
