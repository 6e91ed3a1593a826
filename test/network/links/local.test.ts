import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { localPair } from '../../../src/network/links/stream.ts';
import { readAll } from '../../support/link-world.ts';

function quietPair(): readonly [Duplex, Duplex] {
  const pair = localPair();
  for (const side of pair) side.on('error', () => {});
  return pair;
}

test('each half ends by itself', async () => {
  const [near, far] = quietPair();
  near.end('question');
  assert.equal((await readAll(far)).toString(), 'question');
  assert.ok(!far.destroyed);
  far.end('answer');
  assert.equal((await readAll(near)).toString(), 'answer');
  assert.ok(near.destroyed && far.destroyed);
});

test('a writer waits for its reader', async () => {
  const [near, far] = quietPair();
  const chunk = Buffer.alloc(64 * 1024);
  let written = 0;
  while (near.write(chunk)) written += chunk.length;
  const held = (): number => near.writableLength + far.readableLength;
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(near.writableNeedDrain);
  assert.ok(held() <= 1024 * 1024, `${held()} bytes are held`);
  const drained = once(near, 'drain');
  far.resume();
  await drained;
});

test('much data arrives whole', async () => {
  const [near, far] = quietPair();
  const total = 20 * 1024 * 1024;
  let sent = 0;
  const source = async function* (): AsyncGenerator<Buffer> {
    for (; sent < total; sent += 100_000) yield Buffer.alloc(100_000, sent % 251);
  };
  let received = 0;
  await Promise.all([
    pipeline(source, near, { end: true }),
    (async () => {
      for await (const chunk of far) received += chunk.length;
      far.end();
    })(),
  ]);
  assert.equal(received, sent);
});

test('destroy resets the other side, which never reads a clean end', async () => {
  for (const destroy of [
    (side: Duplex) => side.destroy(),
    (side: Duplex) => side.destroy(new Error('a fault of this side')),
  ]) {
    const [near, far] = quietPair();
    near.write('half a mess');
    destroy(near);
    await assert.rejects(readAll(far), { code: 'stream_reset' });
    await assert.rejects(new Promise((_, reject) => far.write('x', reject)));
  }
});

test('a reset reaches a side that has ended its half, and a writer that waits', async () => {
  const [near, far] = quietPair();
  far.end();
  const chunk = Buffer.alloc(64 * 1024);
  while (near.write(chunk));
  const failed = once(near, 'error');
  far.destroy();
  const [error]: unknown[] = await failed;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
});
