import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PATH_EVENT_INTERVAL_MS, PATH_EVENTS_BURST, PathEvents } from '../../../src/capabilities/reach/path-events.ts';
import type { PathKind } from '../../../src/foundation/domain/tunnels.ts';
import { type EventCause, type EventPayloads, type EventType, STRANGERS } from '../../../src/foundation/events.ts';
import { type Aid, nativeAid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { plainPath } from '../../../src/network/transport/path.ts';
import { testAid, testKeys } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const KEY = testKeys(1).publicKey;
const [ALICE, BOB, CAROL, NODE_HERE] = [testAid(2), testAid(3), testAid(4), testAid(5)];

/** Path events for one node that communicates with Alice and the local node. */
function setUp() {
  const clock = new TestClock();
  const reported: [Aid, EventPayloads['path.changed']][] = [];
  const events = new PathEvents({
    clock,
    log: silentLog,
    pairsWith: () => [
      { local: ALICE, remote: BOB },
      { local: ALICE, remote: CAROL },
      { local: NODE_HERE, remote: BOB },
    ],
    isAgent: (aid) => aid === ALICE,
    isKnown: (_aid, peer) => peer === CAROL,
    events: {
      emit: <T extends EventType>(aid: Aid, type: T, data: EventPayloads[T]) => {
        assert.equal(type, 'path.changed');
        return reported.push([aid, data as EventPayloads['path.changed']]);
      },
    },
  });
  const goes = (kind: PathKind | null, host = '192.0.2.1', port = 4122): void => {
    const path = kind === null ? null : plainPath(kind, { host, port });
    events.onChange({ nodeKey: KEY, path, before: null });
  };
  return { clock, reported, events, goes, words: () => reported.map(([, { before, path }]) => `${before} to ${path}`) };
}

test('agents that communicate with a node get one event when the kind of its path changes', () => {
  const { reported, goes } = setUp();
  goes('relay');
  goes('relay');
  assert.deepEqual(reported, [], 'the first path is not a change');
  goes('punched');
  const ways = { path: 'punched', before: 'relay', address: '192.0.2.1:4122', is_relayed: false };
  assert.deepEqual(reported, [[ALICE, { node: nativeAid(KEY), agents: [BOB, CAROL], ...ways }]]);
});

test('a different remote host is a new path of the same kind, a different port is not', () => {
  const { clock, goes, reported } = setUp();
  goes('direct');
  goes('direct', '192.0.2.1', 5000);
  assert.equal(reported.length, 0);
  goes('direct', '192.0.2.2');
  goes(null);
  goes('direct', '192.0.2.2');
  clock.advance(PATH_EVENT_INTERVAL_MS);
  assert.deepEqual(
    reported.map(([, { path, before, address }]) => [path, before, address]),
    [['direct', 'direct', '192.0.2.2:4122']],
  );
});

test('a connection that returns on the same path causes no event, a different path does', () => {
  const { clock, goes, words, reported } = setUp();
  goes('direct');
  goes(null);
  goes('direct');
  assert.deepEqual(words(), []);
  goes(null);
  clock.advance(PATH_EVENT_INTERVAL_MS);
  goes('relay');
  assert.deepEqual(words(), ['direct to relay']);
  assert.equal(reported[0]?.[1].is_relayed, true);
});

test('a flapping path causes events at intervals, and the last event is correct', () => {
  const { clock, goes, words, events } = setUp();
  goes('relay');
  goes('punched');
  for (let i = 0; i < 20; i++) {
    goes('relay');
    goes('punched');
  }
  goes('relay');
  assert.deepEqual(words(), ['relay to punched']);
  clock.advance(PATH_EVENT_INTERVAL_MS);
  assert.deepEqual(words(), ['relay to punched', 'punched to relay']);
  goes('punched');
  goes('relay');
  clock.advance(PATH_EVENT_INTERVAL_MS);
  assert.equal(words().length, 2, 'back at the first path');
  goes('punched');
  events.stop();
  assert.equal(clock.timers, 0);
});

test('the events of one agent are rate-limited', () => {
  const { clock, goes, words } = setUp();
  for (let i = 0; i < 3 * PATH_EVENTS_BURST; i++) {
    goes(i % 2 === 0 ? 'relay' : 'punched');
    clock.advance(PATH_EVENT_INTERVAL_MS);
  }
  assert.ok(words().length >= PATH_EVENTS_BURST && words().length < 2 * PATH_EVENTS_BURST, String(words().length));
});

test('flapping paths of strangers do not use up the limit of a known peer', () => {
  const clock = new TestClock();
  const reported: (EventCause | undefined)[] = [];
  const events = new PathEvents({
    clock,
    log: silentLog,
    pairsWith: (key) => [{ local: ALICE, remote: nativeAid(key) === nativeAid(KEY) ? CAROL : BOB }],
    isAgent: () => true,
    isKnown: (_aid, peer) => peer === CAROL,
    events: { emit: (_aid, _type, _data, cause) => reported.push(cause) },
  });
  const goes = (nodeKey: Uint8Array, kind: PathKind): void =>
    events.onChange({ nodeKey, path: plainPath(kind, { host: '192.0.2.1', port: 1 }), before: null });
  for (let node = 10; node < 10 + 2 * PATH_EVENTS_BURST; node++)
    for (const kind of ['relay', 'punched'] as const) goes(testKeys(node).publicKey, kind);
  assert.deepEqual([...new Set(reported), reported.length], [STRANGERS, PATH_EVENTS_BURST]);
  for (const kind of ['relay', 'punched'] as const) goes(KEY, kind);
  assert.equal(reported.at(-1), CAROL);
});
