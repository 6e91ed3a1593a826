import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PathKind } from '../../../src/foundation/domain/tunnels.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import {
  attemptError,
  directly,
  NODE_DIAL_TIMEOUT_MS,
  NodeAbsent,
  REPEAT_MS,
  raceDialers,
  UNLIKELY_DIAL_TIMEOUT_MS,
} from '../../../src/network/peers/dial.ts';
import type { Connection, Endpoint } from '../../../src/network/transport/types.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { dialer, KEY, PLACE } from '../../support/peer-world.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const never = new AbortController().signal;

function stub(key = KEY) {
  return stubSession(key, true, new TestClock());
}

/** Dialers that start when they are due, and finish when the test decides. */
function racers(...starts: readonly (readonly [PathKind, number])[]) {
  const clock = new TestClock();
  const begun: string[] = [];
  const given: AbortSignal[] = [];
  const results = starts.map(() => Promise.withResolvers<Connection>());
  const dialers = starts.map(([kind, delayMs], i) =>
    dialer(kind, delayMs, (place, signal) => {
      assert.equal(place, PLACE);
      begun.push(kind);
      given.push(signal);
      return results[i]?.promise ?? Promise.reject(new Error('no result'));
    }),
  );
  const caller = new AbortController();
  const outcome = raceDialers(dialers, PLACE, { clock, signal: caller.signal });
  outcome.catch(() => {});
  const fail = async (i: number, message = 'no'): Promise<void> => {
    results[i]?.reject(new SvcError('connect_failed', { message }));
    await settle();
  };
  return { clock, begun, given, results, outcome, fail, caller };
}

test('dialers start in order after their delays, and the first connection wins', async () => {
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
  assert.ok(given[0]?.aborted === true && given[2]?.aborted === true, 'the other dialers are aborted');
  results[0]?.resolve(relayed.session.connection);
  results[1]?.resolve(direct.session.connection);
  await settle();
  assert.deepEqual(
    [relayed, direct, punched].map(({ isClosed }) => isClosed()),
    [true, true, false],
  );
  assert.equal(clock.timers, 0);
});

test('a dialer starts early only if the previous dialer failed', async () => {
  const { clock, begun, outcome, fail } = racers(['direct', 0], ['punched', 300], ['relay', 5000], ['turn', 9000]);
  clock.advance(300);
  await fail(0);
  assert.deepEqual(begun, ['direct', 'punched'], 'the second dialer is still running');
  await fail(1);
  assert.deepEqual(begun, ['direct', 'punched', 'relay']);
  await fail(2);
  assert.equal(begun.length, 4);
  await fail(3, 'the last');
  await assert.rejects(outcome, { code: 'connect_failed', message: 'the last' });
  assert.equal(clock.timers, 0);
  await assert.rejects(raceDialers([], PLACE, { clock, signal: never }), withCode('connect_failed'));
});

test('a dialer that times out has failed, and its late connection is closed', async () => {
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

test('a dialer that reaches another node has failed', async () => {
  const { results, outcome, begun } = racers(['direct', 0], ['relay', 5000]);
  const [other, right] = [stub(new Uint8Array(32).fill(6)), stub()];
  results[0]?.resolve(other.session.connection);
  await settle();
  assert.equal(other.isClosed(), true);
  assert.deepEqual(begun, ['direct', 'relay']);
  results[1]?.resolve(right.session.connection);
  assert.equal(await outcome, right.session.connection);
});

test('an aborted caller starts no further dialer, and all running ones are aborted', async () => {
  const { clock, begun, given, results, outcome, caller } = racers(['direct', 0], ['relay', 5000]);
  caller.abort();
  await assert.rejects(outcome, withCode('cancelled'));
  assert.deepEqual([begun.length, given[0]?.aborted, clock.timers], [1, true, 0]);
  const late = stub();
  results[0]?.resolve(late.session.connection);
  await settle();
  assert.equal(late.isClosed(), true);
  await assert.rejects(
    raceDialers([dialer('direct', 0, () => assert.fail())], PLACE, { clock, signal: caller.signal }),
  );
});

test('among several errors, one that shows a reachable node is reported first', () => {
  const [absent, refused] = [new NodeAbsent(), new SvcError('rate_limited')];
  assert.equal(attemptError([refused, absent]), refused);
  assert.equal(attemptError([absent, absent]), absent);
});

test('a silent address is dialed every 250 ms in every other second, and the first connection wins', async () => {
  const clock = new TestClock();
  const dials: {
    readonly at: number;
    readonly signal: AbortSignal;
    readonly result: PromiseWithResolvers<Connection>;
  }[] = [];
  const startedAt = clock.now();
  const dial: Endpoint['dial'] = (_address, _key, { signal = never } = {}) => {
    const result = Promise.withResolvers<Connection>();
    dials.push({ at: clock.now() - startedAt, signal, result });
    return result.promise;
  };
  const dialing = directly({ dial }, clock).dial(PLACE, never);
  for (let i = 0; i < 12; i++) clock.advance(REPEAT_MS);
  assert.deepEqual(
    dials.map(({ at }) => at),
    [0, 250, 500, 750, 2000, 2250, 2500, 2750],
  );
  const [early, late] = [stub(), stub()];
  dials[1]?.result.resolve(early.session.connection);
  assert.equal(await dialing, early.session.connection);
  assert.ok(dials.every(({ signal }) => signal.aborted));
  dials[2]?.result.resolve(late.session.connection);
  await settle();
  assert.deepEqual([early.isClosed(), late.isClosed(), clock.timers], [false, true, 0]);
});

test('only the first address is dialed again', async () => {
  const clock = new TestClock();
  const hosts: string[] = [];
  const dial: Endpoint['dial'] = ({ host }) => {
    hosts.push(host);
    return new Promise(() => {});
  };
  const addresses = ['198.51.100.7', '198.51.100.8'].map((host) => ({ host, port: 4122 }));
  const outcome = assert.rejects(directly({ dial }, clock).dial({ ...PLACE, addresses }, never));
  await settle();
  for (let ms = REPEAT_MS; ms < NODE_DIAL_TIMEOUT_MS; ms += REPEAT_MS) clock.advance(REPEAT_MS);
  assert.deepEqual([hosts.length, hosts.filter((host) => host === '198.51.100.8').length], [9, 1]);
  clock.advance(REPEAT_MS);
  await outcome;
});

test('an address that refuses is not dialed again, nor one that the node reports as unreachable', async () => {
  const helpers = [{ nodeKey: new Uint8Array(32).fill(9), address: { host: '203.0.113.1', port: 4122 } }];
  for (const [place, isRefused] of [
    [PLACE, true],
    [{ ...PLACE, helpers, natType: 3 }, false],
  ] as const) {
    const clock = new TestClock();
    let dials = 0;
    const dial: Endpoint['dial'] = () => {
      dials++;
      return isRefused ? Promise.reject(new SvcError('connect_failed')) : new Promise(() => {});
    };
    const outcome = assert.rejects(directly({ dial }, clock).dial(place, never));
    await settle();
    clock.advance(UNLIKELY_DIAL_TIMEOUT_MS);
    await outcome;
    assert.equal(dials, 1);
  }
});

test('addresses that the node reports as unreachable for strangers get a shorter timeout', async () => {
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
    const outcome = assert.rejects(directly({ dial }, clock).dial(place, never));
    await clock.run(afterMs - 1);
    assert.equal(given[0]?.aborted, false);
    await clock.run(1);
    assert.equal(given[0]?.aborted, true);
    await outcome;
  }
});
