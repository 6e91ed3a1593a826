import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  MAX_NODE_EVENTS,
  MAX_NODE_EVENTS_PER_KIND,
  NODE_EVENTS_BURST,
  NODE_EVENTS_PER_HOUR,
  NODE_WATCH_MS,
  NodeEvents,
  NodeWatch,
  type WatchedTunnel,
} from '../../../src/capabilities/events/node-events.ts';
import type { CloseReason } from '../../../src/foundation/domain/tunnels.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { NODE_EVENT_TYPES } from '../../../src/foundation/node-events.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const NODE = testAid(1);
const AGENT = testAid(2);
const EVE = { caller: testAid(3), kind: 'call', code: 'access_denied' } as const;
/** Time until one more event of a kind is accepted. */
const ONE_MORE_MS = 3_600_000 / NODE_EVENTS_PER_HOUR;

test('a flood of one kind is counted and evicts no other kind', () => {
  const clock = new TestClock();
  const events = new NodeEvents(NODE, clock);
  let reported = 0;
  events.onAppended(() => reported++);
  events.emit('config', { keys: ['log_level'] });
  for (let i = 0; i < 10 * NODE_EVENTS_BURST; i++) events.emit('call.refused', EVE, AGENT);
  const all = events.after(0, MAX_NODE_EVENTS);
  assert.equal(all.length, 1 + NODE_EVENTS_BURST);
  assert.equal(reported, all.length);
  assert.deepEqual([all[0]?.aid, all[1]?.aid], [NODE, AGENT]);
  clock.advance(ONE_MORE_MS);
  events.emit('call.refused', EVE, AGENT);
  const last = JSON.parse(events.after(0, MAX_NODE_EVENTS).at(-1)?.data ?? '') as { missed: number };
  assert.equal(last.missed, 9 * NODE_EVENTS_BURST);
  for (let i = 0; i < 2 * MAX_NODE_EVENTS; i++) {
    clock.advance(ONE_MORE_MS);
    events.emit('call.refused', EVE, AGENT);
  }
  const kept = events.after(0, MAX_NODE_EVENTS);
  assert.deepEqual([kept.length, kept[0]?.type], [1 + MAX_NODE_EVENTS_PER_KIND, 'config']);
  // A cursor at a deleted event has a gap.
  assert.ok(events.misses(kept[0]?.seq ?? 0, events.bounds().prunedSeq));
  assert.ok(!events.misses(events.lastSeq(), events.bounds().prunedSeq));
  assert.ok(events.misses(events.lastSeq() + 1, events.bounds().prunedSeq));
});

test('all kinds together are limited, and can be filtered', () => {
  const clock = new TestClock();
  const events = new NodeEvents(NODE, clock);
  for (let i = 0; i < MAX_NODE_EVENTS_PER_KIND; i++) {
    clock.advance(ONE_MORE_MS);
    for (const type of NODE_EVENT_TYPES) events.emit(type, {});
  }
  assert.equal(events.after(0, 10 * MAX_NODE_EVENTS).length, MAX_NODE_EVENTS);
  const first = events.after(0, 2, { types: ['network'] });
  assert.deepEqual(
    first.map(({ type }) => type),
    ['network', 'network'],
  );
  assert.deepEqual(events.after(0, 1, { aid: AGENT }), []);
  assert.equal(events.after(events.lastSeq() - 3, 10).length, 3);
});

test('state without change notifications is polled', async () => {
  const clock = new TestClock();
  const reported: unknown[] = [];
  const state = { network: { ready: false, peers: 0 }, update: 'idle' as 'idle' | 'checking' | 'failed' };
  const tunnel = { id: 't1', localAid: AGENT, remoteAid: EVE.caller, listen: '127.0.0.1:9' } as const;
  const noPath = { since: 1_000, heldUntil: 61_000, connections: 2 };
  const whole = { ...tunnel, noPath: null, lastError: null };
  const existing: WatchedTunnel[] = [];
  const closed: (WatchedTunnel & { reason: CloseReason })[] = [];
  const watch = new NodeWatch({
    clock,
    log: silentLog,
    events: { emit: (type, data, aid) => void reported.push([type, data, aid]) },
    network: () => state.network,
    update: () => ({ state: state.update, latest_version: null, error: '' }),
    tunnels: { list: () => existing, closed: () => closed },
  });
  await watch.start();
  const look = async (): Promise<unknown[]> => {
    clock.advance(NODE_WATCH_MS);
    await new Promise((resolve) => setImmediate(resolve));
    return reported.splice(0);
  };
  assert.deepEqual(await look(), []);
  state.network = { ready: true, peers: 2 };
  state.update = 'checking';
  existing.push(whole);
  const data = { id: 't1', remote_aid: EVE.caller, listen: '127.0.0.1:9' };
  assert.deepEqual(await look(), [
    ['network', { ready: true, peers: 2 }, undefined],
    ['tunnel.opened', data, AGENT],
  ]);
  const [since, held_until] = ['1970-01-01T00:00:01.000Z', '1970-01-01T00:01:01.000Z'];
  const lost = ['tunnel.no_path', { ...data, since, held_until, connections: 2 }, AGENT];
  existing[0] = { ...whole, noPath };
  assert.deepEqual(await look(), [lost]);
  assert.deepEqual(await look(), []);
  existing[0] = whole;
  assert.deepEqual(await look(), [['tunnel.path', { ...data, state: 'back', since }, AGENT]]);
  existing[0] = { ...whole, noPath };
  assert.deepEqual(await look(), [lost]);
  existing[0] = { ...whole, lastError: { at: 61_000 } };
  assert.deepEqual(await look(), [['tunnel.path', { ...data, state: 'given_up', since }, AGENT]]);
  state.network = { ready: true, peers: 9 };
  state.update = 'failed';
  existing.pop();
  closed.push({ ...whole, reason: 'idle' });
  assert.deepEqual(await look(), [
    ['update', { state: 'failed', latest_version: null, error: '' }, undefined],
    ['tunnel.closed', { ...data, reason: 'idle' }, AGENT],
  ]);
  state.network = { ready: false, peers: 0 };
  assert.deepEqual(await look(), [['network', { ready: false, peers: 0 }, undefined]]);
  await watch.stop();
  assert.equal(clock.timers, 0);
});
