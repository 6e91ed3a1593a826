/** Fresh seeds. */
import { test } from 'node:test';
import { assertHolds, SMALL_WORLD } from '../support/simulation.ts';

/** Seconds for fresh seeds. */
const SECONDS = Number(process.env['SIM_SECONDS'] ?? 20);

test('fresh seeds for 20 seconds or SIM_SECONDS', async () => {
  const end = Date.now() + SECONDS * 1000;
  for (let seed = Math.floor(Date.now() / 1000) % 1_000_000; Date.now() < end; seed++)
    await assertHolds([...SMALL_WORLD, '--seed', String(seed)]);
});
