import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mappingOf, natTypeOf } from '../../../src/network/reachability/nat.ts';

const OUTER = { host: '198.51.100.1', port: 4000 };
const isOwn = ({ host }: { readonly host: string }): boolean => host === '192.0.2.1';

test('two hosts that see one port alike see a cone, or a port that nothing translates', () => {
  assert.deepEqual(mappingOf([OUTER, { ...OUTER }], isOwn), { mapping: 'cone', address: OUTER });
  const own = { host: '192.0.2.1', port: 4000 };
  assert.deepEqual(mappingOf([own, { ...own }, null], isOwn), { mapping: 'open', address: own });
});

test('hosts that see another port or another address each see a symmetric translation', () => {
  const symmetric = { mapping: 'symmetric', address: null };
  assert.deepEqual(mappingOf([OUTER, { ...OUTER, port: 4001 }], isOwn), symmetric);
  assert.deepEqual(mappingOf([OUTER, null, { ...OUTER, host: '198.51.100.2' }], isOwn), symmetric);
});

test('one host alone cannot tell, and silence says nothing', () => {
  assert.deepEqual(mappingOf([null, OUTER], isOwn), { mapping: 'unknown', address: OUTER });
  assert.deepEqual(mappingOf([null, null], isOwn), { mapping: 'unknown', address: null });
});

test('the NAT type is that of the port where it was looked at, and what the record network says where it was not', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => natTypeOf('unknown', natType)),
    [0, 1, 2, 3, 4],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => natTypeOf('cone', natType)),
    [3, 1, 2, 3, 3],
  );
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((natType) => natTypeOf('symmetric', natType)),
    [4, 1, 4, 4, 4],
  );
  assert.deepEqual(
    [natTypeOf('unknown', 1, true), natTypeOf('symmetric', 1, true), natTypeOf('unknown', 2, true)],
    [3, 4, 2],
    'a QUIC port that nobody reaches is not public',
  );
});
