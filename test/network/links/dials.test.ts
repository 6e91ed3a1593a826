import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PathKind } from '../../../src/foundation/domain/tunnels.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import {
  type Dialler,
  dialBy,
  directly,
  NODE_DIAL_TIMEOUT_MS,
  NodeAbsent,
  UNHELPED,
  UNLIKELY_DIAL_TIMEOUT_MS,
  whyNot,
} from '../../../src/network/links/dial.ts';
import { Dials, JOINED_MS } from '../../../src/network/links/dials.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import type { Connection, Endpoint } from '../../../src/network/transport/types.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;
const KEY = new Uint8Array(32).fill(5);
const PLACE = { nodeKey: KEY, addresses: [{ host: '198.51.100.1', port: 4122 }], ...UNHELPED };

function stub(key = KEY, kind: PathKind = 'direct') {
  return stubSession(key, true, new TestClock(), plainPath(kind, { host: '198.51.100.1', port: 4122 }));
}

function connection(): Connection {
  return stub().session.connection;
}

/** A way that is scripted by its name. */
function dialler(kind: PathKind, delayMs: number, dial: Dialler['dial'], leads = true): Dialler {
  return { kind, delayMs: () => delayMs, timeoutMs: 1000, mayLead: () => leads, dial };
}

/** Ways that begin when they are due, and end when the test says so. */
function racers(...starts: readonly (readonly [PathKind, number])[]) {
  const clock = new TestClock();
  const begun: string[] = [];
  const given: AbortSignal[] = [];
  const results = starts.map(() => Promise.withResolvers<Connection>());
  const diallers = starts.map(([kind, delayMs], i) =>
    dialler(kind, delayMs, (place, signal) => {
      assert.equal(place, PLACE);
      begun.push(kind);
      given.push(signal);
      return results[i]?.promise ?? Promise.reject(new Error('no result'));
    }),
  );
  const caller = new AbortController();
  const outcome = dialBy(diallers, PLACE, { clock, signal: caller.signal });
  outcome.catch(() => {});
  const fail = async (i: number, message = 'no'): Promise<void> => {
    results[i]?.reject(new SvcError('connect_failed', { message }));
    await settle();
  };
  return { clock, begun, given, results, outcome, fail, caller };
}

test('ways begin after their delays, in that order, and the first connection counts', async () => {
  const { clock, begun, given, results, outcome } = racers(['relay', 700], ['direct', 0], ['punched', 300]);
  assert.deepEqual(begun, ['direct']);
  clock.advance(299);
  assert.equal(begun.length, 1);
  clock.advance(1);
  clock.advance(399);
  assert.deepEqual(begun, ['direct', 'punched']);
  clock.advance(1);
  assert.deepEqual(begun, ['direct', 'punched', 'relay']);
  const [relayed, direct, punched] = [stub(), stub(), stub()];
  results[2]?.resolve(punched.session.connection);
  assert.equal(await outcome, punched.session.connection);
  assert.ok(given[0]?.aborted === true && given[2]?.aborted === true, 'the others are given up');
  results[0]?.resolve(relayed.session.connection);
  results[1]?.resolve(direct.session.connection);
  await settle();
  assert.deepEqual(
    [relayed, direct, punched].map(({ isClosed }) => isClosed()),
    [true, true, false],
  );
  assert.equal(clock.timers, 0);
});

test('a way begins before its time where the one before it has failed, and not sooner', async () => {
  const { clock, begun, outcome, fail } = racers(['direct', 0], ['punched', 300], ['relay', 5000], ['turn', 9000]);
  clock.advance(300);
  await fail(0);
  assert.deepEqual(begun, ['direct', 'punched'], 'the one before it still runs');
  await fail(1);
  assert.deepEqual(begun, ['direct', 'punched', 'relay']);
  await fail(2);
  assert.equal(begun.length, 4);
  await fail(3, 'the last');
  await assert.rejects(outcome, { code: 'connect_failed', message: 'the last' });
  assert.equal(clock.timers, 0);
  await assert.rejects(dialBy([], PLACE, { clock, signal: never }), withCode('connect_failed'));
});

test('a way that takes longer than it may has failed, and what comes of it later is closed', async () => {
  const { clock, begun, results, outcome, given } = racers(['direct', 0], ['relay', 5000]);
  clock.advance(1000);
  await settle();
  assert.deepEqual(begun, ['direct', 'relay']);
  const [late, relayed] = [stub(), stub()];
  assert.equal(given[0]?.aborted, true);
  results[0]?.resolve(late.session.connection);
  await settle();
  assert.equal(late.isClosed(), true);
  results[1]?.resolve(relayed.session.connection);
  assert.equal(await outcome, relayed.session.connection);
});

test('a way that leads to another node than the wanted one has failed', async () => {
  const { results, outcome, begun } = racers(['direct', 0], ['relay', 5000]);
  const [other, right] = [stub(new Uint8Array(32).fill(6)), stub()];
  results[0]?.resolve(other.session.connection);
  await settle();
  assert.equal(other.isClosed(), true);
  assert.deepEqual(begun, ['direct', 'relay']);
  results[1]?.resolve(right.session.connection);
  assert.equal(await outcome, right.session.connection);
});

test('who gives up is led no other way, and nothing is left of those that were tried', async () => {
  const { clock, begun, given, results, outcome, caller } = racers(['direct', 0], ['relay', 5000]);
  caller.abort();
  await assert.rejects(outcome, withCode('cancelled'));
  assert.deepEqual([begun.length, given[0]?.aborted, clock.timers], [1, true, 0]);
  const late = stub();
  results[0]?.resolve(late.session.connection);
  await settle();
  assert.equal(late.isClosed(), true);
  await assert.rejects(dialBy([dialler('direct', 0, () => assert.fail())], PLACE, { clock, signal: caller.signal }));
});

/** Dials that lead nowhere until the test lets them. */
function setUp(...others: readonly Dialler[]) {
  const clock = new TestClock();
  const arrivals: ((connection: Connection) => void)[] = [];
  const session = stubSession(KEY, true, clock).session;
  const dials = new Dials({
    clock,
    diallers: () => [
      {
        ...dialler('direct', 0, (_place, signal) => {
          return new Promise((resolve, reject) => {
            arrivals.push(resolve);
            signal.addEventListener('abort', () => reject(signal.reason));
          });
        }),
        timeoutMs: NODE_DIAL_TIMEOUT_MS,
      },
      ...others,
    ],
    greet: async () => session,
  });
  return { clock, arrivals, session, dials };
}

test('an attempt is shared while it runs', async () => {
  const { arrivals, session, dials } = setUp();
  const first = dials.to(PLACE, true);
  assert.equal(dials.to({ ...PLACE, addresses: [] }, true), first);
  const joined = first.join(never);
  for (const arrive of arrivals) arrive(connection());
  assert.equal(await joined, session);
  assert.notEqual(dials.to(PLACE, true), first);
});

test('an attempt that does not know all that somebody knows is not his, and either one serves both', async () => {
  const { arrivals, session, dials } = setUp();
  const first = dials.to(PLACE, true);
  const elsewhere = { ...PLACE, addresses: [{ host: '198.51.100.2', port: 4122 }] };
  const second = dials.to(elsewhere, true);
  assert.notEqual(second, first);
  assert.equal(dials.to(elsewhere, true), second);
  const [before, after] = [first.join(never), second.join(never)];
  arrivals[1]?.(connection());
  assert.equal(await after, session);
  dials.settle(session);
  assert.equal(await before, session);
});

test('who comes a while after an attempt has begun begins another one, and either one serves both', async () => {
  const { clock, arrivals, session, dials } = setUp();
  const first = dials.to(PLACE, true);
  const early = first.join(never);
  clock.advance(JOINED_MS - 1);
  assert.equal(dials.to(PLACE, true), first);
  clock.advance(1);
  const second = dials.to(PLACE, true);
  assert.notEqual(second, first);
  assert.equal(dials.to(PLACE, true), second);
  const late = second.join(never);
  assert.equal(arrivals.length, 2);
  arrivals[1]?.(connection());
  assert.equal(await late, session);
  dials.settle(session);
  assert.equal(await early, session);
});

test('an attempt that was given up serves nobody who comes after', async () => {
  const { arrivals, session, dials } = setUp();
  const gone = new AbortController();
  const left = assert.rejects(dials.to(PLACE, true).join(gone.signal), withCode('cancelled'));
  gone.abort();
  await left;
  const next = dials.to(PLACE, true).join(never);
  assert.equal(arrivals.length, 2);
  arrivals[1]?.(connection());
  assert.equal(await next, session);
});

test('a connection that came another way serves who waits, and who comes later dials anew', async () => {
  const { clock, dials } = setUp();
  const first = dials.to(PLACE, true);
  const joined = first.join(never);
  const other = stubSession(KEY, false, clock).session;
  dials.settle(other);
  assert.equal(await joined, other);
  clock.advance(NODE_DIAL_TIMEOUT_MS - JOINED_MS / 2);
  const second = dials.to(PLACE, true);
  assert.notEqual(second, first);
  clock.advance(JOINED_MS / 2);
  await settle();
  assert.equal(dials.to(PLACE, true), second, 'the end of the first one leaves the second alone');
});

test('a node that does not answer in time cannot be reached, and the next one dials anew', async () => {
  const { clock, arrivals, dials } = setUp();
  const outcome = assert.rejects(dials.to(PLACE, true).join(never), withCode('connect_failed'));
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await outcome;
  void dials.to(PLACE, true);
  assert.equal(arrivals.length, 2);
});

test('after stop nothing runs and nothing begins', async () => {
  const { clock, arrivals, dials } = setUp();
  const outcome = assert.rejects(dials.to(PLACE, true).join(never), withCode('cancelled'));
  dials.stop();
  await outcome;
  await assert.rejects(dials.to(PLACE, true).join(never), withCode('cancelled'));
  assert.equal(arrivals.length, 1);
  assert.equal(clock.timers, 0);
});

test('who may use no relay has an attempt of his own, and what comes by a relay does not serve him', async () => {
  const relayed = stub(KEY, 'relay');
  const { clock, arrivals, dials, session } = setUp(dialler('relay', 100, async () => relayed.session.connection));
  const any = dials.to(PLACE, true);
  const unrelayed = dials.to(PLACE, false);
  assert.notEqual(any, unrelayed);
  const [joined, waiting] = [any.join(never), unrelayed.join(never)];
  dials.settle(stubSession(KEY, false, clock, relayed.session.connection.path).session);
  assert.equal((await joined).connection.path.kind, 'relay');
  clock.advance(JOINED_MS - 1);
  assert.equal(dials.to(PLACE, false), unrelayed, 'still under way');
  arrivals[1]?.(connection());
  assert.equal(await waiting, session);
});

test('where only a relay is left and none may be used, a relay is required', async () => {
  const relay = (leads: boolean): Dialler => dialler('relay', 0, () => assert.fail('not to be used'), leads);
  for (const [others, code] of [
    [[relay(true)], 'relay_required'],
    [[relay(false)], 'connect_failed'],
    [[], 'connect_failed'],
  ] as const) {
    const { clock, dials } = setUp(...others);
    const outcome = assert.rejects(dials.to(PLACE, false).join(never), withCode(code));
    clock.advance(NODE_DIAL_TIMEOUT_MS);
    await outcome;
    assert.equal(clock.timers, 0);
  }
});

test('a node that is not there by the word of its helpers is not there, whatever else fails and is forbidden', async () => {
  const { clock, dials } = setUp(
    dialler('punched', 0, () => Promise.reject(new NodeAbsent())),
    dialler('relay', 0, () => assert.fail('not to be used')),
  );
  const outcome = assert.rejects(dials.to(PLACE, false).join(never), NodeAbsent);
  clock.advance(NODE_DIAL_TIMEOUT_MS);
  await outcome;
});

test('of several tries one that found the node counts more than those that did not', () => {
  const [absent, refused] = [new NodeAbsent(), new SvcError('rate_limited')];
  assert.equal(whyNot([refused, absent]), refused);
  assert.equal(whyNot([absent, absent]), absent);
});

test('addresses at which strangers do not reach a node by its own word are given less time', async () => {
  const helpers = [{ nodeKey: new Uint8Array(32).fill(9), address: { host: '203.0.113.1', port: 4122 } }];
  const mapped = { host: '198.51.100.1', port: 4122, isMapped: true };
  for (const [place, afterMs] of [
    [{ ...PLACE, helpers, natType: 3 }, UNLIKELY_DIAL_TIMEOUT_MS],
    [{ ...PLACE, helpers, natType: 1 }, NODE_DIAL_TIMEOUT_MS],
    [{ ...PLACE, helpers, natType: 3, addresses: [mapped] }, NODE_DIAL_TIMEOUT_MS],
    [PLACE, NODE_DIAL_TIMEOUT_MS],
  ] as const) {
    const clock = new TestClock();
    const given: AbortSignal[] = [];
    const dial: Endpoint['dial'] = (_address, _key, { signal } = {}) => {
      if (signal !== undefined) given.push(signal);
      return new Promise(() => {});
    };
    const outcome = assert.rejects(directly({ endpoint: { dial }, clock }).dial(place, never));
    await clock.run(afterMs - 1);
    assert.equal(given[0]?.aborted, false);
    await clock.run(1);
    assert.equal(given[0]?.aborted, true);
    await outcome;
  }
});

test('a way of another kind that falls back to a relay does not bring one to who may use none', async () => {
  const fallen = stub(KEY, 'turn');
  const { clock, dials } = setUp(dialler('punched', 100, async () => fallen.session.connection));
  const outcome = assert.rejects(dials.to(PLACE, false).join(never), withCode('relay_required'));
  clock.advance(100);
  await outcome;
  assert.equal(fallen.isClosed(), true);
});
