/**
 * Seeds that once broke a guarantee. A change of the sources changes what a seed does, so the oldest ones are as good as
 * fresh seeds after some time: the gate runs the newest, and `npm run soak` runs all.
 */
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { splitOptions } from '../../sim/runs.ts';
import { scaled } from '../support/scale.ts';
import { assertHolds } from '../support/simulation.ts';

/** Number of seeds in the gate. */
const NEWEST = 7;

/** The options that a seed needs. */
interface Seed {
  readonly why: string;
  readonly options: string;
}

const seeds: readonly Seed[] = JSON.parse(readFileSync(new URL('./seeds.json', import.meta.url), 'utf8'));
for (const { why, options } of seeds.slice(scaled(-NEWEST, 0)))
  test(why, async () => void (await assertHolds(splitOptions(options))));
