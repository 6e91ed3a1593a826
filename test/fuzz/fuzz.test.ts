/**
 * Feeds every target what once broke it, and so many made-up inputs, the same in every run. By hand,
 * for longer and with other seeds: `npm run fuzz`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corpusNames, corpusOf } from './engine/corpus.ts';
import { Fuzzer } from './engine/fuzzer.ts';
import { TARGETS } from './targets/index.ts';

const SEED = 8;
/** Largest kept input, bytes, and kept inputs of one target: what is kept forever stays small. */
const MAX_KEPT_BYTES = 4096;
const MAX_KEPT = 20;

for (const target of TARGETS) {
  test(target.name, async () => {
    const prepared = await target.prepare();
    try {
      const kept = corpusOf(target.name);
      assert.ok(
        kept.length <= MAX_KEPT && kept.every(({ length }) => length <= MAX_KEPT_BYTES),
        'kept inputs are few and small',
      );
      const { finding, outcomes } = await new Fuzzer(target, prepared, SEED).run(
        kept,
        (inputs) => inputs >= target.inputs,
      );
      if (finding !== null) assert.fail(`${Buffer.from(finding.input).toString('hex')}: ${String(finding.error)}`);
      assert.ok(outcomes.size > 1, 'every input came to the same');
    } finally {
      await prepared.close?.();
    }
  });
}

test('targets have names of their own, and kept inputs belong to one', () => {
  const names = TARGETS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const name of corpusNames()) assert.ok(names.includes(name), `no target is called ${name}`);
});
