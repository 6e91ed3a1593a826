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
  }),
) {
  const clock = new TestClock();
  const state: { current: NodeSession | null } = { current: null };
  const dialled: Address[] = [];
  const answers: (() => Promise<Uint8Array>)[] = [];
  const line = new HelperClient({
    clock,
    endpoint: {
      dial: async (address) => {
        dialled.push(address);
        return stubSession(KEY, true, clock).session.connection;
      },
    },
    pool: {
      current: () => state.current,
      upgrade: async () => stubSession(KEY, true, clock).session,
    },
    nodeRequests: { request: async () => await (answers.shift() ?? (async () => answer))() },
  });
  return { clock, state, dialled, answers, line };
}

test('a helper is asked over the connection that we dialled, and says where it sees us', async () => {
  const { line, state, dialled, clock } = world();
  assert.deepEqual((await line.hello(HELPER)).seenAt, SEEN_AT);
  state.current = stubSession(KEY, true, clock).session;
  await line.hello(HELPER);
  assert.deepEqual(dialled, []);
});

test('one that dialled us, or is reached another way, is dialled from the socket of all dials', async () => {
  const { line, state, dialled, clock } = world();
  state.current = stubSession(KEY, false, clock).session;
  await line.hello(HELPER);
  state.current = stubSession(KEY, true, clock, plainPath('punched', HELPER.address)).session;
  await line.hello(HELPER);
  assert.deepEqual(dialled, [HELPER.address, HELPER.address]);
});

test('an answer that is none is no help', async () => {
  await assert.rejects(world(Uint8Array.of(1)).line.hello(HELPER), { code: 'protocol_error' });
});

test('a request that was lost with a dead path is sent once more by the new one, and no other', async () => {
  const { line, state, answers, clock } = world();
  const fail = (to: () => NodeSession | null) => async () => {
    state.current?.close();
    state.current = to();
    throw new SvcError('connect_failed');
  };
  const fresh = (): NodeSession => stubSession(KEY, true, clock).session;
  state.current = fresh();
  answers.push(fail(fresh));
  assert.deepEqual((await line.hello(HELPER)).seenAt, SEEN_AT);
  answers.push(fail(fresh), fail(fresh));
  await assert.rejects(line.hello(HELPER), { code: 'connect_failed' });
  answers.push(fail(() => null));
  await assert.rejects(line.hello(HELPER), { code: 'connect_failed' });
  state.current = fresh();
  answers.push(async () => {
    throw new SvcError('access_denied');
  });
  await assert.rejects(line.hello(HELPER), { code: 'access_denied' });
});
