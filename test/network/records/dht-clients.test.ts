/** Which nodes count as clients of this node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENT_SILENT_MS, DhtClients } from '../../../src/network/records/routing-admission.ts';
import { TestClock } from '../../support/test-clock.ts';

const NONE = (): boolean => false;
const A = { host: '192.0.2.1', port: 1001 };
const B = { host: '192.0.2.1', port: 1002 };

test('a client counts from its first proof until it falls silent', () => {
  const clock = new TestClock();
  const clients = new DhtClients({ clock });
  clients.heard(A);
  assert.equal(clients.count(NONE), 0, 'an unverified address may be forged');
  assert.deepEqual([clients.proven(A), clients.proven(A), clients.proven(B)], [true, false, true]);
  assert.equal(clients.count(NONE), 2);
  assert.equal(
    clients.count((host) => host === A.host),
    0,
    'a node in the routing table has another socket',
  );
  clock.jump(CLIENT_SILENT_MS);
  clients.heard(A);
  clock.jump(1);
  assert.equal(clients.count(NONE), 1);
  clock.jump(CLIENT_SILENT_MS);
  assert.equal(clients.count(NONE), 0);
});
