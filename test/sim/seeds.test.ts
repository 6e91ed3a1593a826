/** Every seed that once broke a guarantee. */
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { assertHolds } from '../support/simulation.ts';

/** The options that a seed needs. */
interface Seed {
  readonly why: string;
  readonly options: readonly string[];
}

const seeds: readonly Seed[] = JSON.parse(readFileSync(new URL('./seeds.json', import.meta.url), 'utf8'));
for (const { why, options } of seeds) test(why, async () => void (await assertHolds(options)));
