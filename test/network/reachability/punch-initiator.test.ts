import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { KnownNodes } from '../../../src/network/known-nodes.ts';
import { PunchGuard } from '../../../src/network/reachability/punch-guard.ts';
import { PunchInitiator } from '../../../src/network/reachability/punch-initiator.ts';
import { encodeHelperReply } from '../../../src/network/reachability/signals.ts';
import { TurnServers } from '../../../src/network/reachability/turn/turn-servers.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLED = new Uint8Array(32).fill(1);
const HELPER = { nodeKey: new Uint8Array(32).fill(2), address: { host: '203.0.113.10', port: 4000 } };
const US = { host: '192.0.2.200', port: 6000 };
const SEEN = { host: '198.51.100.1', port: 5000 };

/** A caller with a helper that answers as the test configures. Returns the dialed addresses. */
function world(listensAt: Address | null, relayPort: number | null = null) {
  const dialed: Address[] = [];
  const clock = new TestClock();
  const caller = new PunchInitiator({
    clock,
    lender: { mapping: 'cone', lend: () => assert.fail() },
    pool: { prepare: () => {}, dial: () => assert.fail() },
    guard: new PunchGuard(clock, new KnownNodes()),
    turn: new TurnServers([], clock, silentLog),
    random: Math.random,
    request: async () =>
      encodeHelperReply({
        seenAt: US,
        relays: true,
        reached: false,
        relayPort,
        tlsPorts: [],
        called: { outcome: 'ready', mapping: 'cone', listensAt, isSprayed: false, seenAt: SEEN },
      }),
    dial: async (address) => {
      dialed.push(address);
      throw new SvcError('timeout');
    },
    ownIpv6: async () => ({ host: '2001:db8::1', port: 6000 }),
    adopt: () => assert.fail(),
  });
  return { caller, dialed };
}

for (const listensAt of [
  { host: '127.0.0.1', port: 5000 },
  { host: '192.168.1.1', port: 5000 },
  { host: '169.254.169.254', port: 8080 },
  { host: '198.51.100.1', port: 53 },
])
  test(`a helper cannot make a caller dial ${listensAt.host}:${listensAt.port}`, async () => {
    const { caller, dialed } = world(listensAt);
    await assert.rejects(caller.punch(CALLED, [HELPER]), { code: 'connect_failed' });
    await assert.rejects(caller.turn(CALLED, HELPER), { code: 'connect_failed' });
    assert.deepEqual(dialed, []);
  });

test('a helper cannot make a caller dial a low port over IPv6', async () => {
  const { caller, dialed } = world({ host: '2606:4700::1', port: 443 });
  const at = { host: '2606:4700::1', port: 5000 };
  await assert.rejects(caller.punchOverIpv6(CALLED, HELPER, at), { code: 'connect_failed' });
  assert.deepEqual(dialed, []);
});

test('a helper cannot make a caller dial a low relay port', async () => {
  const { caller, dialed } = world(null, 53);
  await assert.rejects(caller.relay(CALLED, HELPER), { code: 'connect_failed' });
  assert.deepEqual(dialed, []);
});

test('a helper in the same network may name a private host', async () => {
  const { caller, dialed } = world({ host: '192.168.1.7', port: 5000 });
  const local = { ...HELPER, address: { host: '192.168.1.2', port: 4000 } };
  await assert.rejects(caller.punch(CALLED, [local]), { code: 'timeout' });
  assert.equal(dialed[0]?.host, '192.168.1.7');
});
