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

test('each half ends on its own', async () => {
  const [local, remote] = quietPair();
  local.end('question');
  assert.equal((await readAll(remote)).toString(), 'question');
  assert.ok(!remote.destroyed);
  remote.end('answer');
  assert.equal((await readAll(local)).toString(), 'answer');
  assert.ok(local.destroyed && remote.destroyed);
});

test('a writer waits for its reader', async () => {
  const [local, remote] = quietPair();
  const chunk = Buffer.alloc(64 * 1024);
  let written = 0;
  while (local.write(chunk)) written += chunk.length;
  const held = (): number => local.writableLength + remote.readableLength;
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(local.writableNeedDrain);
  assert.ok(held() <= 1024 * 1024, `${held()} bytes are buffered`);
  const drained = once(local, 'drain');
  remote.resume();
  await drained;
});

test('large transfers arrive complete', async () => {
  const [local, remote] = quietPair();
  const total = 20 * 1024 * 1024;
  let sent = 0;
  const source = async function* (): AsyncGenerator<Buffer> {
    for (; sent < total; sent += 100_000) yield Buffer.alloc(100_000, sent % 251);
  };
  let received = 0;
  await Promise.all([
    pipeline(source, local, { end: true }),
    (async () => {
      for await (const chunk of remote) received += chunk.length;
      remote.end();
    })(),
  ]);
  assert.equal(received, sent);
});

test('destroying a side resets the other side, which does not see a clean end', async () => {
  for (const destroy of [
    (side: Duplex) => side.destroy(),
    (side: Duplex) => side.destroy(new Error('an error of this side')),
  ]) {
    const [local, remote] = quietPair();
    local.write('part of a mess');
    destroy(local);
    await assert.rejects(readAll(remote), { code: 'stream_reset' });
    await assert.rejects(new Promise((_, reject) => remote.write('x', reject)));
  }
});

test('a reset reaches a side that ended its half, and a blocked writer', async () => {
  const [local, remote] = quietPair();
  remote.end();
  const chunk = Buffer.alloc(64 * 1024);
  while (local.write(chunk));
  const failed = once(local, 'error');
  remote.destroy();
  const [error]: unknown[] = await failed;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'stream_reset');
});
