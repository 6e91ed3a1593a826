import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { nodeName } from '../../src/daemon/node-name.ts';
import { calledName } from '../../src/foundation/called-name.ts';

test('a node has the configured name, or that of its machine', () => {
  assert.equal(nodeName(' laptop '), 'laptop');
  assert.equal(nodeName(''), calledName(hostname().split('.')[0]) ?? '');
});
