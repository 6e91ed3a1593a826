import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type DialWay, dialBy } from '../../../src/network/links/dial.ts';
import { Dials, NODE_DIAL_TIMEOUT_MS } from '../../../src/network/links/dials.ts';
import type { QuicConnection } from '../../../src/network/quic/types.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;
const KEY = new Uint8Array(32).fill(5);
const PLACE = { nodeKey: KEY, addresses: [{ host: '198.51.100.1', port: 4122 }] };

function connection(): QuicConnection {
  return stubSession(KEY, true, new TestClock()).session.connection;
}

test('ways are tried in their order, each where those before it do not lead there', async () => {
  const found = connection();
  const tried: string[] = [];
  const way =
    (name: string, leads: boolean): DialWay =>
    async (place) => {
      assert.equal(place, PLACE);
      tried.push(name);
      if (!leads) throw new SvcError('connect_failed', { message: name });
      return found;
    };
  assert.equal(await dialBy([way('a', false), way('b', true), way('c', true)], PLACE, never), found);
  assert.deepEqual(tried.splice(0), ['a', 'b']);
  await assert.rejects(dialBy([way('a', false), way('b', false)], PLACE, never), { message: 'b' });
  await assert.rejects(dialBy([], PLACE, never), withCode('connect_failed'));
});

test('who gives up is not led another way', async () => {
  const caller = new AbortController();
  let tried = 0;
  const way: DialWay = async () => {
    tried++;
    caller.abort();
    throw new SvcError('cancelled');
  };
  await assert.rejects(dialBy([way, way], PLACE, caller.signal), withCode('cancelled'));
  assert.equal(tried, 1);
});

/** Dials that lead nowhere until the test lets them. */
function setUp() {
  const clock = new TestClock();
  const arrivals: ((connection: QuicConnection) => void)[] = [];
  const greeted: boolean[] = [];
  const session = stubSession(KEY, true, clock).session;
  const dials = new Dials({
    clock,
    ways: [
      (_place, signal) =>
        new Promise((resolve, reject) => {
          arrivals.push(resolve);
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    ],
    greet: async (_connection, isSide) => {
      greeted.push(isSide);
      return session;
    },
  });
  return { clock, arrivals, greeted, session, dials };
}

test('an attempt is shared while it runs; one for bulk is not', async () => {
  const { arrivals, greeted, session, dials } = setUp();
  const first = dials.to(PLACE);
  assert.equal(dials.to({ ...PLACE, addresses: [] }), first);
  assert.deepEqual([...first.addresses], ['198.51.100.1:4122']);
  const side = dials.attempt(PLACE, true).join(never);
  const joined = first.attempt.join(never);
  for (const arrive of arrivals) arrive(connection());
  assert.equal(await joined, session);
  assert.equal(await side, session);
  assert.deepEqual(new Set(greeted), new Set([false, true]));
  assert.equal(greeted.length, 2);
  assert.notEqual(dials.to(PLACE), first);
});

test('a connection that came another way serves who waits, and who comes later dials anew', async () => {
  const { clock, dials } = setUp();
  const first = dials.to(PLACE);
  const joined = first.attempt.join(never);
  const other = stubSession(KEY, false, clock).session;
  dials.settle(other);
  assert.equal(await joined, other);
  clock.advance(1000);
  const second = dials.to(PLACE);
  assert.notEqual(second, first);
  clock.advance(NODE_DIAL_TIMEOUT_MS - 1000);
  await settle();
  assert.equal(dials.to(PLACE), second, 'the end of the first one leaves the second alone');
});

test('a node that does not answer in time cannot be reached, and the next one dials anew', async () => {
  const { clock, arrivals, dials } = setUp();
  const outcome = assert.rejects(dials.to(PLACE).attempt.join(never), withCode('connect_failed'));
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await outcome;
  void dials.to(PLACE);
  assert.equal(arrivals.length, 2);
});

test('after stop nothing runs and nothing begins', async () => {
  const { clock, arrivals, dials } = setUp();
  const outcome = assert.rejects(dials.to(PLACE).attempt.join(never), withCode('cancelled'));
  dials.stop();
  await outcome;
  await assert.rejects(dials.to(PLACE).attempt.join(never), withCode('cancelled'));
  await assert.rejects(dials.attempt(PLACE, true).join(never), withCode('cancelled'));
  assert.equal(arrivals.length, 1);
  assert.equal(clock.timers, 0);
});
