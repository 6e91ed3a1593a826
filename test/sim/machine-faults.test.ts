/** Faults of a machine: no descriptor is free, or it has lost its address. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertHolds, simulate } from '../support/simulation.ts';

const WORLD = '--nodes 3 --days 0.02 --actions 60 --pause 1 --healing 10 --users notes,records --seed 1'.split(' ');

for (const kind of ['no descriptors', 'lost address'])
  test(`nodes survive the fault "${kind}" while the network is silent`, async () => {
    const { faults } = await assertHolds([...WORLD, '--faults', `${kind},partition`]);
    assert.ok((faults[kind] ?? 0) > 0, JSON.stringify(faults));
  });

test('a node whose record network binds a port without a guard ends', async () => {
  const { stdout, stderr } = await simulate(['defects', '--only', 'client-port-unguarded', '--seeds', '1']);
  assert.match(stdout, /seed 1: simulations end\n1 of 1 defects found/, `${stdout}${stderr}`);
});
