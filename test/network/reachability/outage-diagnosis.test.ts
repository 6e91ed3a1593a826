/** The error of a failed request: whether other nodes answer, and if not, why. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { OutageDiagnosis } from '../../../src/network/reachability/outage-diagnosis.ts';
import { TestClock } from '../../support/test-clock.ts';

/** The knowledge of a node without answers. */
function world(places: readonly Address[], interfaces: readonly string[] = ['192.0.2.1']) {
  const clock = new TestClock();
  const known = {
    lastAnswerAt: Number.NEGATIVE_INFINITY,
    offsetMs: null as number | null,
    state: 'silent' as 'silent' | 'unresolved',
    contacts: true,
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
      contacts: () => (known.contacts ? [{ contact, state: known.state, addresses: [] }] : []),
      places: () => places,
    },
    interfaces: () => interfaces,
    env: {},
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
