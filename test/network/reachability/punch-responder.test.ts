import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import type { NatMapping } from '../../../src/foundation/domain/directory.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { KnownNodes } from '../../../src/network/known-nodes.ts';
import { RANDOM_PORTS } from '../../../src/network/reachability/opening.ts';
import { PUNCHES_PER_HOST, PUNCHES_PER_PEER, PunchGuard } from '../../../src/network/reachability/punch-guard.ts';
import { PunchResponder } from '../../../src/network/reachability/punch-responder.ts';
import { ATTEMPT_BYTES, type Introduction } from '../../../src/network/reachability/signals.ts';
import { TurnServers } from '../../../src/network/reachability/turn/turn-servers.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLER = new Uint8Array(32).fill(1);
const HELPER = { nodeKey: new Uint8Array(32).fill(2), address: { host: '203.0.113.10', port: 4000 } };
const OTHER_HELPER = { nodeKey: new Uint8Array(32).fill(3), address: { host: '198.51.100.10', port: 4000 } };
const SEEN = { host: '192.0.2.1', port: 5000 };
const OURS = { host: '192.0.2.200', port: 6000 };

interface WorldOptions {
  readonly mapping?: NatMapping;
  readonly waitMs?: number;
  readonly mayCall?: boolean;
  readonly mayRelay?: boolean;
  readonly ownIpv6?: string | null;
}

/** Only the requests to the other modules are recorded. The lab tests their effects. */
function world({ mapping = 'cone', waitMs = 0, mayCall = true, mayRelay = true, ownIpv6 = null }: WorldOptions = {}) {
  const targets: (readonly Address[])[] = [];
  const distant: boolean[] = [];
  const dialed: Address[] = [];
  const burst: Address[] = [];
  const prepared = { times: 0 };
  const failed = new SvcError('connect_failed');
  const called = new PunchResponder({
    log: silentLog,
    lender: {
      mapping,
      lend: (options) => {
        targets.push(options.targets);
        distant.push(options.needsFullHops);
        return Promise.reject(failed);
      },
      lendAtRelay: () => Promise.reject(failed),
      lendToHelperRelay: () => Promise.reject(failed),
      lendLocally: () => Promise.reject(failed),
    },
    turn: new TurnServers([], new TestClock(), silentLog),
    pool: {
      waitMs,
      prepare: () => void prepared.times++,
      dial: (address) => {
        burst.push(address);
        return Promise.reject(failed);
      },
    },
    guard: new PunchGuard(new TestClock(), new KnownNodes()),
    random: Math.random,
    ownIpv6: async () => ownIpv6,
    isHelper: (nodeKey) => [HELPER, OTHER_HELPER].some((helper) => helper.nodeKey === nodeKey),
    mayCall: () => mayCall,
    mayRelay: () => mayRelay,
    accept: () => {},
    dial: async (address) => void dialed.push(address),
  });
  const introduce = async (more: Partial<Introduction> = {}, helper = HELPER) => {
    const usual = { caller: CALLER, attempt: new Uint8Array(ATTEMPT_BYTES), means: 'punch', mapping: 'cone' } as const;
    const { outcome } = await called.answer(
      { ...usual, seenAt: SEEN, listensAt: null, needsFullHops: false, relay: null, ...more },
      helper,
    );
    return outcome;
  };
  return { introduce, targets, distant, dialed, burst, prepared };
}

test('only chosen helpers can introduce callers, and only permitted callers', async () => {
  const stranger = { ...HELPER, nodeKey: new Uint8Array(32).fill(9) };
  const open = world();
  assert.equal(await open.introduce({}, stranger), 'refused');
  const closed = world({ mayCall: false });
  assert.equal(await closed.introduce(), 'refused');
  assert.deepEqual([open.targets, closed.targets], [[], []]);
});

test('a port is opened for the address at which the helper sees the caller', async () => {
  const { introduce, targets } = world();
  await introduce();
  assert.deepEqual(targets, [[SEEN]]);
});

test('random ports are opened only after a second helper saw the caller at that host', async () => {
  const { introduce, targets } = world();
  assert.equal(await introduce({ mapping: 'symmetric' }), 'relay');
  assert.equal(targets.length, 0);
  assert.equal(await introduce({ means: 'witness' }, OTHER_HELPER), 'noted');
  await introduce({ mapping: 'symmetric' });
  assert.equal(targets[0]?.length, RANDOM_PORTS);
});

test('a node behind a symmetric NAT asks the caller to listen, or for a relay if both are', async () => {
  const { introduce } = world({ mapping: 'symmetric' });
  assert.equal(await introduce(), 'listen');
  assert.equal(await introduce({ mapping: 'symmetric' }), 'relay');
});

test('a listening caller is dialed only at the host at which the helper sees it', async () => {
  const { introduce, dialed } = world();
  const elsewhere = { host: '192.0.2.2', port: 7000 };
  assert.equal(await introduce({ means: 'listening', listensAt: elsewhere }), 'refused');
  assert.deepEqual(dialed, []);
  const there = { ...SEEN, port: 7000 };
  assert.equal(await introduce({ means: 'listening', listensAt: there }), 'dialling');
  assert.deepEqual(dialed, [there]);
});

test('many handshakes are sent only to a host that two helpers confirmed, and not during a previous round', async () => {
  const there = { ...SEEN, port: 7000 };
  const listening = { means: 'listening', listensAt: there } as const;
  const { introduce, burst } = world({ mapping: 'symmetric' });
  assert.equal(await introduce(listening), 'relay');
  await introduce({ means: 'witness' }, OTHER_HELPER);
  assert.equal(await introduce(listening), 'dialling');
  assert.deepEqual(burst, [there]);
  const busy = world({ mapping: 'symmetric', waitMs: 5 });
  await busy.introduce({ means: 'witness' }, OTHER_HELPER);
  assert.equal(await busy.introduce(listening), 'relay');
  assert.deepEqual(busy.burst, []);
});

test('a caller without a NAT is dialed once, even from behind a symmetric NAT', async () => {
  const there = { ...SEEN, port: 7000 };
  const { introduce, dialed, burst, prepared } = world({ mapping: 'symmetric' });
  assert.equal(await introduce({ mapping: 'open' }), 'listen');
  assert.equal(await introduce({ means: 'listening', mapping: 'open', listensAt: there }), 'dialling');
  assert.deepEqual([dialed, burst, prepared.times], [[there], [], 0], 'no sockets are opened for it');
});

test('over IPv6, packets with a low hop limit are sent to the address that the caller claims', async () => {
  const listensAt = { host: '2001:db8::1', port: 5000 };
  const asked = { means: 'ipv6', mapping: 'symmetric', listensAt, needsFullHops: true } as const;
  const none = world({ mapping: 'symmetric' });
  assert.equal(await none.introduce(asked), 'relay');
  assert.deepEqual(none.targets, [], 'a node without IPv6');
  const { introduce, targets, distant } = world({ mapping: 'symmetric', ownIpv6: '2001:db8:2::2' });
  await introduce(asked);
  assert.deepEqual([targets, distant], [[[listensAt]], [false]]);
  assert.equal(await introduce({ ...asked, listensAt: { ...listensAt, port: 53 } }), 'refused');
  for (let i = 1; i < PUNCHES_PER_PEER; i++) await introduce(asked);
  assert.equal(await introduce(asked), 'refused');
  assert.equal(targets.length, PUNCHES_PER_PEER);
});

test('a source that names many hosts causes few packets, even with many keys', async () => {
  const { introduce, targets } = world({ ownIpv6: '2001:db8:2::2' });
  for (let i = 1; i <= 3 * PUNCHES_PER_HOST; i++) {
    const listensAt = { host: `2001:db8:${i}::1`, port: 5000 };
    await introduce({ means: 'ipv6', caller: new Uint8Array(32).fill(i), listensAt });
  }
  assert.equal(targets.length, PUNCHES_PER_HOST);
});

test('a failure is reported to the caller as an outcome', async () => {
  const { introduce } = world();
  assert.equal(await introduce(), 'relay');
  assert.equal(await introduce({ means: 'relay', relay: { port: OURS.port, token: new Uint8Array(16) } }), 'relay');
});

test('if relays are not permitted, the introduction is refused and no relay is used', async () => {
  const { introduce } = world({ mayRelay: false });
  assert.equal(await introduce({ means: 'relay', relay: { port: OURS.port, token: new Uint8Array(16) } }), 'refused');
});
