import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { readExactly } from '../../../src/network/links/wire.ts';
import { withCode } from '../../support/link-world.ts';

const never = new AbortController().signal;

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
