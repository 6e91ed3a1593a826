import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { NodeSession } from '../../../src/network/peers/session.ts';
import { HelperClient } from '../../../src/network/reachability/helper-client.ts';
import { encodeHelperReply } from '../../../src/network/reachability/signals.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = new Uint8Array(32).fill(1);
const HELPER = { nodeKey: KEY, address: { host: '198.51.100.1', port: 4122 } };
const SEEN_AT = { host: '203.0.113.9', port: 5000 };

function world(
  answer: Uint8Array = encodeHelperReply({
    seenAt: SEEN_AT,
    relays: true,
    reached: false,
    called: null,
    relayPort: null,
    tlsPorts: [],
  }),
) {
  const clock = new TestClock();
  const state: { current: NodeSession | null } = { current: null };
  const dialed: Address[] = [];
  const answers: (() => Promise<Uint8Array>)[] = [];
  const client = new HelperClient({
    clock,
    endpoint: {
      dial: async (address) => {
        dialed.push(address);
        return stubSession(KEY, true, clock).session.connection;
      },
    },
    pool: {
      current: () => state.current,
      upgrade: async () => stubSession(KEY, true, clock).session,
    },
    nodeRequests: {
      request: async (_kind, _node, _body, options) => {
        assert.equal(options?.prefersOwnDial, true, 'the helper sees the socket of ordinary dials');
        return await (answers.shift() ?? (async () => answer))();
      },
    },
  });
  return { clock, state, dialed, answers, client };
}

test('a request to a helper uses an outbound connection, and returns the observed address', async () => {
  const { client, state, dialed, clock } = world();
  assert.deepEqual((await client.hello(HELPER)).seenAt, SEEN_AT);
  state.current = stubSession(KEY, true, clock).session;
  await client.hello(HELPER);
  assert.deepEqual(dialed, []);
});

test('if the connection is inbound or indirect, the helper is dialed from the main socket', async () => {
  const { client, state, dialed, clock } = world();
  state.current = stubSession(KEY, false, clock).session;
  await client.hello(HELPER);
  state.current = stubSession(KEY, true, clock, plainPath('punched', HELPER.address)).session;
  await client.hello(HELPER);
  assert.deepEqual(dialed, [HELPER.address, HELPER.address]);
});

test('an invalid response is an error', async () => {
  await assert.rejects(world(Uint8Array.of(1)).client.hello(HELPER), { code: 'protocol_error' });
});

test('a request that was lost with a dead path is retried once, and no other request is', async () => {
  const { client, state, answers, clock } = world();
  const fail = (to: () => NodeSession | null) => async () => {
    state.current?.close();
    state.current = to();
    throw new SvcError('connect_failed');
  };
  const fresh = (): NodeSession => stubSession(KEY, true, clock).session;
  state.current = fresh();
  answers.push(fail(fresh));
  assert.deepEqual((await client.hello(HELPER)).seenAt, SEEN_AT);
  answers.push(fail(fresh), fail(fresh));
  await assert.rejects(client.hello(HELPER), { code: 'connect_failed' });
  // The path died some time ago, so the helper may be back.
  answers.push(fail(() => null));
  assert.deepEqual((await client.hello(HELPER)).seenAt, SEEN_AT);
  state.current = fresh();
  answers.push(async () => {
    throw new SvcError('access_denied');
  });
  await assert.rejects(client.hello(HELPER), { code: 'access_denied' });
});
