import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reachableFromPeers } from '../../src/daemon/surfaces.ts';

const FOUND = { ready: true, peers: 3, natType: 1, observed: [], inRoutingTables: true };

test('a node is reachable from peers only where there are peers to say so', () => {
  assert.equal(reachableFromPeers(FOUND), true);
  assert.equal(reachableFromPeers({ ...FOUND, natType: 3, inRoutingTables: false }), false);
  assert.equal(reachableFromPeers({ ...FOUND, natType: 0, inRoutingTables: false }), undefined);
  assert.equal(reachableFromPeers({ ...FOUND, peers: 0 }), undefined);
});
