/** Fresh seeds. `npm test` starts them first, with the lowest priority, and waits for them at the end. */
import { test } from 'node:test';
import { assertHolds, SMALL_WORLD } from '../support/simulation.ts';

/** Seconds of CPU time for fresh seeds. */
const SECONDS = Number(process.env['SIM_SECONDS'] ?? 20);

test('fresh seeds for 20 seconds of CPU time or SIM_SECONDS', async () => {
  let spent = 0;
  for (let seed = Math.floor(Date.now() / 1000) % 1_000_000; spent < SECONDS; seed++)
    spent += (await assertHolds([...SMALL_WORLD, '--faults', 'all', '--seed', String(seed)])).cpuSeconds;
});
