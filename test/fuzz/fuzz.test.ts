/**
 * Runs every target with its stored inputs and a fixed number of generated ones, the same in every run. To run longer
 * and with other seeds: `npm run fuzz`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corpusNames, corpusOf } from './engine/corpus.ts';
import { Fuzzer } from './engine/fuzzer.ts';
import { TARGETS } from './targets/index.ts';

const SEED = 8;
/** Maximum size of a stored input in bytes, and maximum number of stored inputs of a target. */
const MAX_STORED_BYTES = 4096;
const MAX_STORED = 20;

for (const target of TARGETS) {
  test(target.name, async () => {
    const prepared = await target.prepare();
    try {
      const kept = corpusOf(target.name);
      assert.ok(
        kept.length <= MAX_STORED && kept.every(({ length }) => length <= MAX_STORED_BYTES),
        'stored inputs are few and small',
      );
      const { finding, outcomes } = await new Fuzzer(target, prepared, SEED).run(
        kept,
        (inputs) => inputs >= target.inputs,
      );
      if (finding !== null) assert.fail(`${Buffer.from(finding.input).toString('hex')}: ${String(finding.error)}`);
      assert.ok(outcomes.size > 1, 'every input had the same outcome');
    } finally {
      await prepared.close?.();
    }
  });
}

test('target names are unique, and stored inputs belong to a target', () => {
  const names = TARGETS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const name of corpusNames()) assert.ok(names.includes(name), `no target is called ${name}`);
});
