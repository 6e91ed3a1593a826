import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportOrigins, importOrigins } from '../../../src/capabilities/origins/moving.ts';
import { MAX_ORIGINS } from '../../../src/foundation/domain/services.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENT = testAid(1);

function homeWith(...tunnelPorts: number[]) {
  const memory = new OriginStore(Store.open(':memory:', MIGRATIONS), testSecrets());
  return { memory, clock: new TestClock(), tunnelPorts: () => tunnelPorts };
}

function part(count: number) {
  return Array.from({ length: count }, (_, i) => ({ remote_aid: testAid(10 + i), local_port: 5000 + i }));
}

test('local addresses move with their ports and tokens, and only for the moved agent', () => {
  const old = homeWith();
  const common = { accessToken: 'token', openedAt: 1 };
  old.memory.save({ ...common, id: 'a', localAid: AGENT, remoteAid: testAid(2), port: 4001 });
  old.memory.save({ ...common, id: 'b', localAid: testAid(3), remoteAid: testAid(2), port: 4002 });
  const moved = exportOrigins(old.memory, AGENT);
  assert.deepEqual(moved, [{ remote_aid: testAid(2), local_port: 4001, access_token: 'token' }]);
  const home = homeWith();
  assert.deepEqual(importOrigins(home, AGENT, moved)(), []);
  assert.deepEqual(exportOrigins(home.memory, AGENT), moved);
});

test('addresses with a port in use, or above the limit, are skipped and reported', () => {
  const home = homeWith(5001);
  home.memory.save({
    id: 'x',
    localAid: testAid(4),
    remoteAid: testAid(5),
    accessToken: undefined,
    port: 5000,
    openedAt: 1,
  });
  assert.deepEqual(importOrigins(home, AGENT, part(3))(), [5000, 5001]);
  assert.deepEqual(exportOrigins(home.memory, AGENT), part(3).slice(2));
  const full = homeWith();
  for (const { remote_aid, local_port } of part(MAX_ORIGINS - 1))
    full.memory.save({
      id: `${local_port}`,
      localAid: testAid(4),
      remoteAid: remote_aid,
      accessToken: undefined,
      port: 6000 + local_port,
      openedAt: 1,
    });
  assert.deepEqual(importOrigins(full, AGENT, part(2))(), [5001]);
  assert.equal(full.memory.list().length, MAX_ORIGINS);
});

test('two addresses of one agent or on one port are rejected', () => {
  const [one] = part(1);
  assert.ok(one !== undefined);
  const refused = (error: unknown) => error instanceof SvcError && error.code === 'bad_file';
  assert.throws(() => importOrigins(homeWith(), AGENT, [one, { ...one, local_port: 1 }]), refused);
  assert.throws(() => importOrigins(homeWith(), AGENT, [one, { ...one, remote_aid: testAid(9) }]), refused);
  assert.throws(() => importOrigins(homeWith(), AGENT, [{ ...one, remote_aid: 'aid1nonsense' }]), refused);
});
