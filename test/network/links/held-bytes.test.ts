/** Data buffered for slow readers has a budget. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QuotaHolder } from '../../../src/foundation/quota.ts';
import {
  HeldBytes,
  MAX_HELD_BYTES,
  MAX_HELD_PER_NODE_BYTES,
  MAX_HELD_PER_SOURCE_BYTES,
  MAX_STUCK_PER_NODE_BYTES,
} from '../../../src/network/links/held-bytes.ts';
import { STREAM_BUFFER_BYTES, WatchedStream } from '../../../src/network/transport/stream.ts';
import { eventually } from '../../support/eventually.ts';

const CHUNK = Buffer.alloc(64 * 1024);

/** A stream with a remote side that reads nothing until the test allows it. */
class Unread extends WatchedStream {
  readonly #waiting: (() => void)[] = [];
  taken = 0;
  #reads = false;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.taken += chunk.length;
    if (this.#reads) callback();
    else this.#waiting.push(callback);
  }

  readOn(): void {
    this.#reads = true;
    for (const callback of this.#waiting.splice(0)) callback();
  }
}

function unread(held: HeldBytes, holder: Partial<QuotaHolder> = {}): Unread {
  const stream = new Unread({ writableHighWaterMark: STREAM_BUFFER_BYTES });
  held.watch(stream, { node: 'node', source: '192.0.2.1', named: false, ...holder });
  return stream;
}

/** Writes like a service that always has more data. */
function fill(stream: Unread): Unread {
  for (let wantsMore = true; wantsMore && !stream.destroyed; ) wantsMore = stream.write(CHUNK);
  return stream;
}

test('streams without readers stay within the budgets of their node, their source and all strangers', () => {
  const held = new HeldBytes();
  const streams = Array.from({ length: 2000 }, () => fill(unread(held)));
  assert.ok(held.ofStrangers <= MAX_HELD_PER_NODE_BYTES);
  const alive = streams.filter(({ destroyed }) => !destroyed).length;
  assert.ok(alive >= 200, `only ${alive} remain`);
  assert.deepEqual(
    [streams[0]?.destroyed, streams.at(-1)?.destroyed],
    [true, false],
    'the longest stalled streams are closed first',
  );
  for (let node = 0; node < 20; node++) for (let i = 0; i < 100; i++) fill(unread(held, { node: `node ${node}` }));
  assert.ok(held.ofStrangers <= MAX_HELD_PER_SOURCE_BYTES);
  for (let i = 0; i < 2000; i++) fill(unread(held, { node: `free ${i}`, source: `10.${i >> 8}.${i & 255}.1` }));
  assert.ok(held.ofStrangers <= MAX_HELD_BYTES);
});

test('a known caller, and a stranger elsewhere with little data, keep their streams during a flood', () => {
  const held = new HeldBytes();
  const named = fill(unread(held, { named: true }));
  const elsewhere = fill(unread(held, { node: 'elsewhere', source: '198.51.100.7' }));
  for (let i = 0; i < 2000; i++) fill(unread(held, { node: `node ${i % 50}` }));
  const late = fill(unread(held, { node: 'late', source: '203.0.113.7' }));
  assert.deepEqual([named.destroyed, elsewhere.destroyed, late.destroyed], [false, false, false]);
});

test('a stream releases its bytes as its reader advances, and when it closes', async () => {
  const held = new HeldBytes();
  const stream = fill(unread(held));
  assert.equal(held.ofStrangers, 2 * STREAM_BUFFER_BYTES);
  stream.readOn();
  assert.equal(held.ofStrangers, 0);
  assert.equal(stream.taken, STREAM_BUFFER_BYTES);
  const other = fill(unread(held));
  await new Promise((closed) => other.once('close', closed).destroy());
  assert.equal(held.ofStrangers, 0);
});

test('streams buffer less when much of the budget is used', () => {
  const held = new HeldBytes();
  const sizes = Array.from({ length: 100 }, () => fill(unread(held)).writableLength);
  assert.equal(sizes[0], STREAM_BUFFER_BYTES);
  assert.equal(sizes.at(-1), CHUNK.length);
});

test('a node loses its connection if the engine cannot release its reset streams', async () => {
  const held = new HeldBytes();
  let closed = 0;
  const [released, connection] = [Promise.withResolvers<void>(), { close: () => closed++ }];
  const stuck = 1 + MAX_STUCK_PER_NODE_BYTES / (2 * STREAM_BUFFER_BYTES);
  for (let i = 0; i < stuck; i++) {
    const stream = Object.assign(new Unread({ writableHighWaterMark: STREAM_BUFFER_BYTES }), {
      connection,
      whenReleased: () => released.promise,
    });
    held.watch(stream, { node: 'node', source: '192.0.2.1', named: false });
    fill(stream);
    await new Promise((ended) => stream.once('close', ended).destroy());
  }
  assert.deepEqual([held.stuck, closed, held.ofStrangers], [MAX_STUCK_PER_NODE_BYTES, 1, 0]);
  released.resolve();
  await released.promise;
  await eventually('all are released', () => held.stuck === 0);
});
