import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combineNatType, detectMapping } from '../../../src/network/reachability/nat.ts';

const OUTER = { host: '198.51.100.1', port: 4000 };
const isOwn = ({ host }: { readonly host: string }): boolean => host === '192.0.2.1';

test('if two hosts see the same port, the mapping is a cone, or there is no NAT', () => {
  assert.deepEqual(detectMapping([OUTER, { ...OUTER }], isOwn), { mapping: 'cone', address: OUTER });
  const own = { host: '192.0.2.1', port: 4000 };
  assert.deepEqual(detectMapping([own, { ...own }, null], isOwn), { mapping: 'open', address: own });
});

test('if two hosts see different ports or addresses, the mapping is symmetric', () => {
  const symmetric = { mapping: 'symmetric', address: null };
  assert.deepEqual(detectMapping([OUTER, { ...OUTER, port: 4001 }], isOwn), symmetric);
  assert.deepEqual(detectMapping([OUTER, null, { ...OUTER, host: '198.51.100.2' }], isOwn), symmetric);
});

test('a single host is not enough, and silence proves nothing', () => {
  assert.deepEqual(detectMapping([null, OUTER], isOwn), { mapping: 'unknown', address: OUTER });
  assert.deepEqual(detectMapping([null, null], isOwn), { mapping: 'unknown', address: null });
});

test('the NAT type is detected at the QUIC port, or else taken from the record network', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => combineNatType('unknown', natType)),
    [0, 1, 2, 3, 4],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => combineNatType('cone', natType)),
    [3, 1, 2, 3, 3],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => combineNatType('symmetric', natType)),
    [4, 1, 4, 4, 4],
  );
  assert.deepEqual(
    [combineNatType('unknown', 1, true), combineNatType('symmetric', 1, true), combineNatType('unknown', 2, true)],
    [3, 4, 2],
    'an unreachable QUIC port is not public',
  );
});
