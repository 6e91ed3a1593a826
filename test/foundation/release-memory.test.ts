import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { releaseMemory } from '../../src/foundation/release-memory.ts';

const MIB = 1024 * 1024;
/** Blocks that the C library keeps in its heap, between others that stay. */
const BLOCK_BYTES = 64 * 1024;
const BLOCKS = 3200;
const STAYING = 100;

/** Fills 200 MiB with blocks and the heap with texts, and drops nearly everything. */
function load(): readonly Buffer[] {
  const blocks = Array.from({ length: BLOCKS }, () => Buffer.allocUnsafeSlow(BLOCK_BYTES).fill(1));
  const texts = Array.from({ length: 100_000 }, (_, i) => String(i).repeat(200));
  assert.equal(texts.length, 100_000);
  return blocks.filter((_, i) => i % STAYING === STAYING - 1);
}

test('free memory returns to the system, used memory stays', async () => {
  releaseMemory();
  const before = process.memoryUsage.rss();
  const warnings: unknown[] = [];
  const heard = (warning: unknown): void => void warnings.push(warning);
  process.on('warning', heard);
  const stays = load();
  const full = process.memoryUsage.rss();
  assert.ok(full - before > 150 * MIB, `the load took ${Math.round((full - before) / MIB)} MiB`);
  releaseMemory();
  const more = (process.memoryUsage.rss() - before) / MIB;
  assert.ok(more < 40, `${Math.round(more)} MiB are kept`);
  assert.ok(stays.every((block) => block.every((byte) => byte === 1)));
  // Node warns in a later turn.
  await turn();
  process.off('warning', heard);
  assert.deepEqual(warnings, []);
  assert.equal(Reflect.get(globalThis, 'gc'), undefined, 'nothing else can see how');
});
