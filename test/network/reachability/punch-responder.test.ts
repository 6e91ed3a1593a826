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

/** Nothing but what was asked of the parts: what they do is tested in the lab. */
function world({ mapping = 'cone', waitMs = 0, mayCall = true, mayRelay = true, ownIpv6 = null }: WorldOptions = {}) {
  const targets: (readonly Address[])[] = [];
  const far: boolean[] = [];
  const dialled: Address[] = [];
  const burst: Address[] = [];
  const prepared = { times: 0 };
  const failed = new SvcError('connect_failed');
  const called = new PunchResponder({
    log: silentLog,
    lender: {
      mapping,
      lend: (options) => {
        targets.push(options.targets);
        far.push(options.isFar);
        return Promise.reject(failed);
      },
      lendAtRelay: () => Promise.reject(failed),
      lendTowardsRelay: () => Promise.reject(failed),
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
    take: () => {},
    dial: async (address) => void dialled.push(address),
  });
  const hear = async (more: Partial<Introduction> = {}, helper = HELPER) => {
    const usual = { caller: CALLER, attempt: new Uint8Array(ATTEMPT_BYTES), means: 'punch', mapping: 'cone' } as const;
    const { outcome } = await called.answer(
      { ...usual, seenAt: SEEN, listensAt: null, isFar: false, relay: null, ...more },
      helper,
    );
    return outcome;
  };
  return { hear, targets, far, dialled, burst, prepared };
}

test('only helpers that this node has chosen introduce others, and only those who may call', async () => {
  const stranger = { ...HELPER, nodeKey: new Uint8Array(32).fill(9) };
  const open = world();
  assert.equal(await open.hear({}, stranger), 'refused');
  const closed = world({ mayCall: false });
  assert.equal(await closed.hear(), 'refused');
  assert.deepEqual([open.targets, closed.targets], [[], []]);
});

test('a port is opened for where the helper sees the caller', async () => {
  const { hear, targets } = world();
  await hear();
  assert.deepEqual(targets, [[SEEN]]);
});

test('random ports are opened only once a second helper sees the caller there', async () => {
  const { hear, targets } = world();
  assert.equal(await hear({ mapping: 'symmetric' }), 'relay');
  assert.equal(targets.length, 0);
  assert.equal(await hear({ means: 'witness' }, OTHER_HELPER), 'noted');
  await hear({ mapping: 'symmetric' });
  assert.equal(targets[0]?.length, RANDOM_PORTS);
});

test('a node whose own port changes asks the caller to listen, or for a relay where both do', async () => {
  const { hear } = world({ mapping: 'symmetric' });
  assert.equal(await hear(), 'listen');
  assert.equal(await hear({ mapping: 'symmetric' }), 'relay');
});

test('a caller that listens is dialled only where the helper sees it', async () => {
  const { hear, dialled } = world();
  const elsewhere = { host: '192.0.2.2', port: 7000 };
  assert.equal(await hear({ means: 'listening', listensAt: elsewhere }), 'refused');
  assert.deepEqual(dialled, []);
  const there = { ...SEEN, port: 7000 };
  assert.equal(await hear({ means: 'listening', listensAt: there }), 'dialling');
  assert.deepEqual(dialled, [there]);
});

test('hundreds of handshakes go only to where two helpers see the caller, and not while the last round goes on', async () => {
  const there = { ...SEEN, port: 7000 };
  const listening = { means: 'listening', listensAt: there } as const;
  const { hear, burst } = world({ mapping: 'symmetric' });
  assert.equal(await hear(listening), 'relay');
  await hear({ means: 'witness' }, OTHER_HELPER);
  assert.equal(await hear(listening), 'dialling');
  assert.deepEqual(burst, [there]);
  const busy = world({ mapping: 'symmetric', waitMs: 5 });
  await busy.hear({ means: 'witness' }, OTHER_HELPER);
  assert.equal(await busy.hear(listening), 'relay');
  assert.deepEqual(busy.burst, []);
});

test('a caller that nothing stands before is dialled once, though our own port changes', async () => {
  const there = { ...SEEN, port: 7000 };
  const { hear, dialled, burst, prepared } = world({ mapping: 'symmetric' });
  assert.equal(await hear({ mapping: 'open' }), 'listen');
  assert.equal(await hear({ means: 'listening', mapping: 'open', listensAt: there }), 'dialling');
  assert.deepEqual([dialled, burst, prepared.times], [[there], [], 0], 'no sockets are made for it');
});

test('over IPv6 a caller is met where it says that it dials from, by packets that go not far', async () => {
  const listensAt = { host: '2001:db8::1', port: 5000 };
  const asked = { means: 'ipv6', mapping: 'symmetric', listensAt, isFar: true } as const;
  const none = world({ mapping: 'symmetric' });
  assert.equal(await none.hear(asked), 'relay');
  assert.deepEqual(none.targets, [], 'a node without IPv6');
  const { hear, targets, far } = world({ mapping: 'symmetric', ownIpv6: '2001:db8:2::2' });
  await hear(asked);
  assert.deepEqual([targets, far], [[[listensAt]], [false]]);
  assert.equal(await hear({ ...asked, listensAt: { ...listensAt, port: 53 } }), 'refused');
  for (let i = 1; i < PUNCHES_PER_PEER; i++) await hear(asked);
  assert.equal(await hear(asked), 'refused');
  assert.equal(targets.length, PUNCHES_PER_PEER);
});

test('one source that names ever new hosts has few of them written to, however many keys it has', async () => {
  const { hear, targets } = world({ ownIpv6: '2001:db8:2::2' });
  for (let i = 1; i <= 3 * PUNCHES_PER_HOST; i++) {
    const listensAt = { host: `2001:db8:${i}::1`, port: 5000 };
    await hear({ means: 'ipv6', caller: new Uint8Array(32).fill(i), listensAt });
  }
  assert.equal(targets.length, PUNCHES_PER_HOST);
});

test('what fails on the way becomes a word for the caller', async () => {
  const { hear } = world();
  assert.equal(await hear(), 'relay');
  assert.equal(await hear({ means: 'relay', relay: { port: OURS.port, token: new Uint8Array(16) } }), 'relay');
});

test('a node that may not be relayed to is not, and no relay is asked to', async () => {
  const { hear } = world({ mayRelay: false });
  assert.equal(await hear({ means: 'relay', relay: { port: OURS.port, token: new Uint8Array(16) } }), 'refused');
});
