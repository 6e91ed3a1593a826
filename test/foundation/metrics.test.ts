import assert from 'node:assert/strict';
import { test } from 'node:test';
import { single } from '../../src/foundation/metrics.ts';

test('a metric of one value has one sample without labels', () => {
  assert.deepEqual(single('svcd_x', 'gauge', 'Help text.', 3), {
    name: 'svcd_x',
    help: 'Help text.',
    type: 'gauge',
    samples: [{ value: 3 }],
  });
});
