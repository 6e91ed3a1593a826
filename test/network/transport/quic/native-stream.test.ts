import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { EngineStream } from '../../../../src/network/transport/engine-connection.ts';
import { plainPath } from '../../../../src/network/transport/path.ts';
import { NativeStream } from '../../../../src/network/transport/quic/native-stream.ts';
import type { Connection } from '../../../../src/network/transport/types.ts';

const KIB = 1024;

interface PendingRead {
  readonly max: number;
  readonly resolve: (chunk: Uint8Array | null) => void;
  readonly reject: (error: Error) => void;
}

/** An engine stream controlled by the test. */
class FakeStream implements EngineStream {
  readonly reads: PendingRead[] = [];
  readonly written: Uint8Array[] = [];
  readonly calls: string[] = [];
  /** While set, writes wait for it. */
  blocked: Promise<void> = Promise.resolve();

  read(max: number): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => this.reads.push({ max, resolve, reject }));
  }
  async write(data: Uint8Array): Promise<void> {
    this.written.push(Uint8Array.from(data));
    await this.blocked;
  }
  async finishWrite(): Promise<void> {
    this.calls.push('finish');
  }
  async resetWrite(): Promise<void> {
    this.calls.push('reset');
  }
  async stopRead(): Promise<void> {
    this.calls.push('stop');
  }
}

const connection: Connection = {
  remoteKey: new Uint8Array(32),
  path: plainPath('lan', { host: '127.0.0.1', port: 1 }),
  outbound: true,
  rtt: () => 0,
  stats: () => ({ bytesSent: 0, bytesReceived: 0, packetsSent: 0, packetsLost: 0 }),
  openStream: () => Promise.reject(new Error('not here')),
  onStream: () => {},
  closed: new Promise(() => {}),
  close: () => {},
};

function open(): { native: FakeStream; stream: NativeStream; released: Promise<void> } {
  const native = new FakeStream();
  let stream: NativeStream | undefined;
  const released = new Promise<void>((resolve) => {
    stream = new NativeStream(native, connection, resolve);
  });
  assert.ok(stream !== undefined);
  return { native, stream, released };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Waits for the next read, which needs another poll of the sockets. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 3; i++) await turn();
};

test('one read is pending at a time, and none while the consumer is behind', async () => {
  const { native, stream } = open();
  stream.resume();
  await turns();
  assert.equal(native.reads.length, 1);
  native.reads[0]?.resolve(Buffer.alloc(10));
  await turns();
  assert.equal(native.reads.length, 2);
  stream.pause();
  for (let i = 1; i < native.reads.length; i++) {
    native.reads[i]?.resolve(Buffer.alloc(64 * KIB));
    await turns();
  }
  const behind = native.reads.length;
  await turns();
  assert.equal(native.reads.length, behind);
  assert.ok(stream.readableLength <= 512 * KIB);
  stream.resume();
  await turns();
  assert.equal(native.reads.length, behind + 1);
});

test('reads start small, grow when they are filled, and shrink for small messages', async () => {
  const { native, stream } = open();
  stream.resume();
  const answers = ['fill', 'fill', 'fill', 'fill', 'half', 'little', 'little', 'little', 'little'];
  for (const [i, answer] of answers.entries()) {
    await turns();
    const { max = 0, resolve } = native.reads[i] ?? {};
    resolve?.(Buffer.alloc(answer === 'fill' ? max : answer === 'half' ? max / 2 : 100));
  }
  await turns();
  assert.deepEqual(
    native.reads.map(({ max }) => max / KIB),
    [4, 16, 64, 256, 256, 256, 64, 16, 4, 4],
  );
});

test('after a short chunk the next read waits for the next write', async () => {
  const { native, stream } = open();
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await turn();
  native.reads[0]?.resolve(Buffer.alloc(10));
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(chunks.length, 1);
  assert.equal(native.reads.length, 1, 'its data is processed first');
  stream.write('an answer');
  assert.equal(native.reads.length, 2);
  await turns();
  assert.equal(native.reads.length, 2, 'one read is pending');
  native.reads[1]?.resolve(Buffer.alloc(4 * KIB));
  await turn();
  assert.equal(native.reads.length, 3, 'a full chunk has more data after it');
  stream.destroy();
});

test('a released chunk frees its memory, unless other chunks share it', () => {
  const { stream } = open();
  const own = Buffer.from(new ArrayBuffer(8 * KIB));
  stream.release(own);
  assert.equal(own.length, 0);
  const shared = Buffer.from(new ArrayBuffer(8 * KIB), KIB, KIB).fill(7);
  stream.release(shared);
  assert.deepEqual(shared, Buffer.alloc(KIB, 7));
  stream.release(own);
});

test('a clean end and a reset are distinguished', async () => {
  const clean = open();
  clean.stream.resume();
  await turn();
  clean.native.reads[0]?.resolve(null);
  await once(clean.stream, 'end');
  assert.equal(clean.stream.errored, null);

  const reset = open();
  reset.stream.resume();
  await turn();
  reset.native.reads[0]?.reject(new Error('stream reset by peer: error 0'));
  await assert.rejects(once(reset.stream, 'end'), { code: 'stream_reset' });
  await reset.released;
  assert.equal(reset.native.reads.length, 1, 'the engine reports a reset once, then a clean end');

  const lost = open();
  lost.stream.resume();
  await turn();
  lost.native.reads[0]?.reject(new Error('connection lost'));
  await assert.rejects(once(lost.stream, 'end'), { code: 'connection_lost' });
});

test('small chunks are merged and large ones split, without loss or reordering', async () => {
  const { native, stream } = open();
  let unblock = (): void => {};
  native.blocked = new Promise((resolve) => {
    unblock = resolve;
  });
  stream.write('first');
  for (let i = 0; i < 100; i++) stream.write(Buffer.alloc(1000, i));
  stream.write(Buffer.alloc(600 * KIB, 200));
  stream.end('last');
  unblock();
  await once(stream, 'finish');
  assert.deepEqual(
    native.written.map(({ length }) => length),
    [5, 100_000, 256 * KIB, 256 * KIB, 88 * KIB + 4],
  );
  const all = Buffer.concat(native.written);
  const expected = [Buffer.from('first'), ...Array.from({ length: 100 }, (_, i) => Buffer.alloc(1000, i))];
  assert.ok(all.equals(Buffer.concat([...expected, Buffer.alloc(600 * KIB, 200), Buffer.from('last')])));
  assert.deepEqual(native.calls, ['finish']);
});

test('destroying a stream resets both halves and drops buffered data', async () => {
  const { native, stream, released } = open();
  let unblock = (): void => {};
  native.blocked = new Promise((resolve) => {
    unblock = resolve;
  });
  stream.write(Buffer.alloc(1024 * KIB));
  await turn();
  stream.destroy();
  unblock();
  await released;
  await turn();
  assert.deepEqual(native.calls.sort(), ['reset', 'stop']);
  assert.equal(native.written.length, 1);
});

test('a cleanly ended half is not reset by a later destroy', async () => {
  const { native, stream, released } = open();
  stream.end('done');
  await once(stream, 'finish');
  stream.destroy();
  await released;
  assert.deepEqual(native.calls, ['finish', 'stop']);
});

test('a failed write destroys the stream without any listener', async () => {
  const { native, stream, released } = open();
  native.blocked = Promise.reject(new Error('sending stopped by peer: error 0'));
  stream.write('x');
  await released;
  assert.equal(Reflect.get(stream.errored ?? {}, 'code'), 'stream_reset');
});

test('a chunk that fills little of its buffer does not keep the rest', async () => {
  const { native, stream } = open();
  stream.pause();
  stream.read(0);
  await turns();
  const small = Uint8Array.of(1, 2, 3);
  native.reads[0]?.resolve(small);
  await turns();
  assert.equal(small.length, 0, 'the engine buffer is free');
  const large = new Uint8Array(2 * KIB).fill(4);
  native.reads[1]?.resolve(large);
  await turns();
  assert.equal(large.length, 2 * KIB, 'a well-filled chunk is not copied');
  assert.deepEqual([...stream.read(5)], [1, 2, 3, 4, 4]);
  stream.destroy();
});
