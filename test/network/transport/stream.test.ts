/** A watched stream pauses its writer at the buffer of its watch, and resumes it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { WatchedStream } from '../../../src/network/transport/stream.ts';

const BUFFER = 1000;
const CHUNK = Buffer.alloc(400);

/** Consumes each chunk one turn later. */
class Slow extends WatchedStream {
  most = 0;
  bytes = 0;
  changes = 0;

  constructor() {
    super({ writableHighWaterMark: 100 * BUFFER });
    this.watchQueue({
      buffer: () => BUFFER,
      added: () => {
        this.most = Math.max(this.most, this.writableLength);
        this.changes++;
      },
      taken: () => this.changes++,
    });
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.bytes += chunk.length;
    setImmediate(callback);
  }
}

test('a writer pauses at the buffer size of the watch, and resumes when the buffer is empty', async () => {
  const stream = new Slow();
  assert.deepEqual([stream.write(CHUNK), stream.write(CHUNK), stream.writableNeedDrain], [true, true, false]);
  assert.deepEqual([stream.write(CHUNK), stream.writableNeedDrain], [false, true]);
  await once(stream, 'drain');
  assert.deepEqual([stream.writableNeedDrain, stream.bytes, stream.changes], [false, 3 * CHUNK.length, 6]);
  assert.equal(stream.write(CHUNK), true);
});

test('all data of a source arrives, with a bounded buffer', async () => {
  const stream = new Slow();
  stream.resume();
  const source = Readable.from(Array.from({ length: 500 }, () => CHUNK));
  const ended = pipeline(source, stream, { end: false });
  await ended;
  const written = Promise.withResolvers<void>();
  stream.end('', 'utf8', () => written.resolve());
  await written.promise;
  assert.equal(stream.bytes, 500 * CHUNK.length);
  assert.ok(stream.most <= BUFFER + CHUNK.length, `${stream.most} bytes were buffered`);
});

test('a callback in place of the encoding is called, and a stream without a watch works as usual', async () => {
  const stream = new Slow();
  await new Promise<void>((written) => stream.write(CHUNK, () => written()));
  class Plain extends WatchedStream {
    override _write(_chunk: Buffer, encoding: string, callback: () => void): void {
      this.encodings.push(encoding);
      callback();
    }
    readonly encodings: string[] = [];
  }
  const plain = new Plain({ decodeStrings: false });
  await new Promise<void>((written) => plain.write('text', 'latin1', () => written()));
  assert.deepEqual(plain.encodings, ['latin1']);
});
