import assert from 'node:assert/strict';
import { test } from 'node:test';
import { single } from '../../src/foundation/metrics.ts';

test('a metric of one value has one sample without labels', () => {
  assert.deepEqual(single('svcd_x', 'gauge', 'What it is.', 3), {
    name: 'svcd_x',
    help: 'What it is.',
    type: 'gauge',
    samples: [{ value: 3 }],
  });
});
