/** The error of a failed request: whether other nodes answer, and if not, why. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { type Exit, OVER_UDP } from '../../../src/foundation/domain/exit.ts';
import { OutageDiagnosis } from '../../../src/network/reachability/outage-diagnosis.ts';
import { EXITS } from '../../support/exits.ts';
import { TestClock } from '../../support/test-clock.ts';

interface Known {
  lastAnswerAt: number;
  offsetMs: number | null;
  state: 'silent' | 'unresolved' | 'other_key';
  contacts: boolean;
  exit: Exit;
  hasProxy: boolean;
  hasPlainProxyOnly: boolean;
  lostHosts: string[];
}

/** The knowledge of a node without answers. */
function world(places: readonly Address[], interfaces: readonly string[] = ['192.0.2.1']) {
  const clock = new TestClock();
  const known: Known = {
    lastAnswerAt: Number.NEGATIVE_INFINITY,
    offsetMs: null,
    state: 'silent',
    contacts: true,
    exit: OVER_UDP,
    hasProxy: false,
    hasPlainProxyOnly: false,
    lostHosts: [],
  };
  const contact = { host: 'node.example', port: 4121 };
  const trouble = new OutageDiagnosis({
    clock,
    records: {
      get lastAnswerAt() {
        return known.lastAnswerAt;
      },
      clocks: () => ({ offsetMs: known.offsetMs, peers: known.offsetMs === null ? 0 : 3 }),
      peers: () => [],
      contacts: () => (known.contacts ? [{ contact, state: known.state, hasAnswered: false, addresses: [] }] : []),
      places: () => places,
    },
    interfaces: () => interfaces,
    listenHosts: { missing: () => known.lostHosts },
    exit: () => known.exit,
    hasProxy: () => known.hasProxy,
    hasPlainProxyOnly: () => known.hasPlainProxyOnly,
  });
  const why = async () => {
    clock.advance(60_000);
    return await trouble.explainFailure(clock.now());
  };
  return { clock, known, trouble, why };
}

async function causeOf(places: readonly Address[], interfaces?: readonly string[], state?: 'unresolved') {
  const { known, why } = world(places, interfaces);
  if (state !== undefined) known.state = state;
  const error = await why();
  assert.equal(error?.code, 'network_unavailable');
  return error.details?.['cause'];
}

/** A non-loopback address of this machine, or null. */
async function ownHost(t: TestContext): Promise<Address | null> {
  const { networkInterfaces } = await import('node:os');
  const all = Object.values(networkInterfaces()).flat();
  const host = all.find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  if (host === undefined) return null;
  const server = createServer().listen(0, host);
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? { host, port: address.port } : null;
}

test('a node without answers reports a network error with the likely cause', async (t) => {
  assert.equal(await causeOf([], undefined, 'unresolved'), 'dns');
  assert.equal(await causeOf([{ host: '192.0.2.9', port: 4121 }], ['127.0.0.1']), 'no_address');
  assert.equal(await causeOf([{ host: '255.255.255.255', port: 4121 }]), 'no_route');
  const host = await ownHost(t);
  if (host === null) return t.diagnostic('this machine has no network address');
  assert.equal(await causeOf([host]), 'udp_blocked');
});

test('another node at the address of a contact is the cause, and not UDP', async () => {
  const { known, why } = world([{ host: '203.0.113.10', port: 4121 }]);
  known.state = 'other_key';
  known.exit = EXITS['without a helper'];
  const error = await why();
  assert.deepEqual(error?.details, { cause: 'other_node' });
  assert.match(error?.message ?? '', /Another node answers at the address of each contact.*new invitation/);
});

test('if only HTTP_PROXY is set, the cause is that svcd does not use it', async () => {
  const { known, why } = world([{ host: '255.255.255.255', port: 4121 }]);
  known.hasPlainProxyOnly = true;
  const error = await why();
  assert.deepEqual(error?.details, { cause: 'proxy_not_used' });
  assert.match(error?.message ?? '', /Set HTTPS_PROXY/);
});

test('a node with recent answers, or without other nodes, reports no network error', async () => {
  const { clock, known, trouble, why } = world([]);
  known.lastAnswerAt = clock.now() + 120_000;
  assert.equal(await why(), null);
  known.lastAnswerAt = clock.now();
  assert.equal((await why())?.code, 'network_unavailable');
  known.contacts = false;
  assert.equal(await why(), null, 'it never had another node');
  assert.equal(trouble.clockOffset(), null);
});

test('if other nodes contradict the clock, the error says that the clock is wrong', async () => {
  const { clock, known, trouble, why } = world([]);
  known.lastAnswerAt = clock.now() + 600_000;
  known.offsetMs = -2 * 86_400_000;
  const error = await why();
  assert.equal(error?.code, 'clock_wrong');
  assert.match(error.message, /172800 s ahead of 3 other nodes/);
  assert.throws(() => trouble.checkClock(600_000), { code: 'clock_wrong' });
  known.offsetMs = 30_000;
  assert.equal(await why(), null);
  trouble.checkClock(600_000);
  assert.deepEqual(trouble.clockOffset(), { offsetMs: 30_000, peers: 3 });
});

test('a node without a way out says why, also if other nodes of the LAN answer', async () => {
  const { clock, known, trouble, why } = world([{ host: '203.0.113.10', port: 4121 }]);
  known.exit = EXITS.portal;
  known.hasProxy = true;
  const alone = await why();
  assert.match(alone?.message ?? '', /^This node cannot reach any other node\. No node .* wants a login first\./);
  assert.deepEqual(alone?.details, { cause: 'portal' });
  known.lastAnswerAt = clock.now() + 600_000;
  assert.match((await why())?.message ?? '', /^This node cannot reach any node in other networks\. No node answers/);
  assert.match(trouble.cutOff() ?? '', /^Nodes in other networks cannot reach this one\. No node answers/);
  known.exit = EXITS['udp-blocked'];
  assert.equal(await why(), null, 'it is connected over TLS');
  assert.equal(trouble.cutOff(), null);
});

test('a machine without a route says this, unless a proxy is set', async () => {
  const { known, why } = world([{ host: '255.255.255.255', port: 4121 }]);
  known.exit = EXITS['without a helper'];
  assert.deepEqual((await why())?.details, { cause: 'no_route' });
  known.hasProxy = true;
  known.exit = EXITS['proxy-password'];
  assert.deepEqual((await why())?.details, { cause: 'proxy_wants_password' });
});

test('if only QUIC is dropped, connections fail for this reason, and look-ups do not', async () => {
  const { clock, known, trouble, why } = world([]);
  known.lastAnswerAt = clock.now() + 600_000;
  known.exit = EXITS['quic-dropped, relays off'];
  assert.equal(await why(), null);
  const error = await trouble.explainDial(clock.now());
  assert.match(error?.message ?? '', /^This node cannot connect to other nodes\. The network drops QUIC/);
  assert.deepEqual(error?.details, { cause: 'quic_dropped' });
  known.exit = EXITS['quic-dropped'];
  assert.equal(await trouble.explainDial(clock.now()), null);
});

test('a lost listen address is named, before what else may be wrong', async () => {
  const { known, why } = world([{ host: '192.0.2.2', port: 4121 }]);
  known.lostHosts = ['192.0.2.1'];
  known.exit = EXITS['without a helper'];
  const error = await why();
  assert.equal(error?.details?.['cause'], 'no_listen_address');
  assert.match(error.message, /does not have its listen address\. The node waits for it/);
});
