import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuditTrail } from '../../../src/capabilities/remote-admin/audit-trail.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AuditStore, MAX_REFUSALS_OF_STRANGERS } from '../../../src/foundation/store/audit.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

function trailWorld() {
  const clock = new TestClock();
  const memory = new AuditStore(Store.open(':memory:', MIGRATIONS));
  return { clock, memory, trail: new AuditTrail(memory, clock, silentLog) };
}

const caller = (n: number) => ({
  caller: testAid(n),
  nodeKey: n.toString(16).padStart(64, '0'),
  address: `10.${n}.0.1`,
});

test('a request is recorded before it is answered, and its status after', () => {
  const { memory, trail, clock } = trailWorld();
  const { answered } = trail.request(caller(1), 'POST', `/agents/${'x'.repeat(5000)}`);
  const [running] = memory.page(1);
  assert.deepEqual([running?.kind, running?.status, running?.path?.length], ['write', null, 256]);
  answered(201);
  assert.equal(memory.page(1)[0]?.status, 201);
  trail.request(caller(1), 'GET', '/status').answered(null);
  assert.deepEqual([memory.page(1)[0]?.kind, memory.page(1)[0]?.status], ['read', null]);
  assert.equal(trail.memory.lastRequest()?.at, clock.now());
});

test('the tools of a request are recorded before they run, and a tool that cannot be recorded does not run', () => {
  const { memory, trail } = trailWorld();
  const { tool } = trail.request(caller(1), 'POST', '/mcp/call');
  tool('svc_status');
  tool('svc_fetch');
  const [entry] = memory.page(1);
  assert.deepEqual([entry?.path, entry?.tools], ['/mcp/call', ['svc_status', 'svc_fetch']]);
  memory.addTool = () => {
    throw new Error('the disk is full');
  };
  assert.throws(() => tool('svc_agent_delete'), /the disk is full/);
});

test('repeated refusals fill neither the disk nor the trail', () => {
  const { memory, trail, clock } = trailWorld();
  for (let i = 0; i < 100; i++) trail.refused(caller(1), 'access_denied', false);
  assert.equal(memory.page(1000).length, 3);
  for (let node = 2; node < 100; node++) trail.refused(caller(node), 'disabled', false);
  assert.equal(memory.page(1000).length, 30);
  // The latest refusal is reported although it was not recorded.
  clock.advance(1000);
  trail.refused(caller(1), 'rate_limited', false);
  assert.deepEqual(trail.lastRefusal(), { caller: testAid(1), at: clock.now(), reason: 'rate_limited' });
  clock.advance(60_000);
  trail.refused(caller(1), 'access_denied', false);
  assert.equal(memory.page(1000).length, 31);
});

test('refusals of an agent that the owner named are recorded and kept despite many refused strangers', () => {
  const { memory, trail, clock } = trailWorld();
  const own = { ...caller(500), address: caller(1).address };
  const refusalsOf = (aid: Aid): number => memory.page(2000).filter((entry) => entry.caller === aid).length;
  for (let node = 1; node < 100; node++) trail.refused(caller(node), 'access_denied', false);
  trail.refused(own, 'disabled', true);
  assert.equal(refusalsOf(own.caller), 1);
  for (let n = 0; n < 1200; n++) {
    clock.advance(10_000);
    trail.refused(caller(n % 200), 'access_denied', false);
  }
  assert.equal(refusalsOf(own.caller), 1);
  assert.equal(memory.page(2000).length, MAX_REFUSALS_OF_STRANGERS + 1);
});

test('many nodes of one source record a few refusals', () => {
  const { memory, trail } = trailWorld();
  for (let node = 1; node < 100; node++)
    trail.refused({ ...caller(node), address: '192.0.2.1' }, 'access_denied', false);
  assert.equal(memory.page(1000).length, 6);
});

test('a status that cannot be written does not stop the daemon', () => {
  const { memory, trail } = trailWorld();
  const { answered } = trail.request(caller(1), 'POST', '/agents');
  memory.setStatus = () => {
    throw new Error('the disk is full');
  };
  answered(200);
});
