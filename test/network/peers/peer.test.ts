/** A peer: attempts to connect, connections, recovery from dead paths, and relocation. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { NODE_DIAL_TIMEOUT_MS, NodeAbsent, type NodePlace } from '../../../src/network/peers/dial.ts';
import { LOOK_MS, UNANSWERED_MS } from '../../../src/network/peers/path-health.ts';
import {
  IDLE_MS,
  JOINED_MS,
  LOOK_ELSEWHERE_MS,
  MAX_IMPROVED,
  MAX_LOOKED_FOR,
  MAX_PER_NODE,
  Peer,
  SIMULTANEOUS_MS,
  SPARE_IDLE_MS,
} from '../../../src/network/peers/peer.ts';
import type { NodeSession } from '../../../src/network/peers/session.ts';
import type { Connection } from '../../../src/network/transport/types.ts';
import { settle, withCode } from '../../support/link-world.ts';
import { arrival, dialer, PeerWorld, PLACE, placeAt } from '../../support/peer-world.ts';

const never = new AbortController().signal;

/** Completes a direct dial. */
function arrive(world: PeerWorld, dial: number): void {
  world.dials[dial]?.arrive(arrival(world.clock).session.connection);
}

describe('attempts', () => {
  test('concurrent callers share one attempt and its session', async () => {
    const world = new PeerWorld();
    const waiting = Array.from({ length: 5 }, () => world.peer.connect(PLACE, never));
    waiting.push(world.peer.connect({ ...PLACE, addresses: [] }, never));
    arrive(world, 0);
    const sessions = await Promise.all(waiting);
    assert.deepEqual([world.dials.length, new Set(sessions).size], [1, 1]);
    assert.equal(await world.peer.connect(PLACE, never), sessions[0], 'the open session is reused');
    assert.equal(world.dials.length, 1);
  });

  test('the first dialer that connects wins, and all other dialers are aborted', async () => {
    const world = new PeerWorld();
    const signals: AbortSignal[] = [];
    world.dialers.push(
      dialer('punched', 300, async () => arrival(world.clock, 'punched').session.connection),
      dialer('relay', 200, (_place, signal) => {
        signals.push(signal);
        return new Promise(() => {});
      }),
    );
    const connecting = world.peer.connect(PLACE, never);
    world.clock.advance(300);
    const session = await connecting;
    assert.equal(session.connection.path.kind, 'punched');
    assert.deepEqual([world.dials[0]?.signal.aborted, signals[0]?.aborted], [true, true]);
    session.close();
    await settle();
    assert.deepEqual([world.clock.timers, world.peer.isAtRest], [0, true]);
  });

  test('a caller with more addresses than the running attempt starts another one, and either connection serves both', async () => {
    const world = new PeerWorld();
    const before = world.peer.connect(PLACE, never);
    const after = [world.peer.connect(placeAt(1), never), world.peer.connect(placeAt(1), never)];
    assert.deepEqual(
      world.dials.map(({ port }) => port),
      [4122, 1],
    );
    arrive(world, 1);
    assert.equal(new Set(await Promise.all([before, ...after])).size, 1);
  });

  test('a caller does not join an old attempt, and either connection serves both', async () => {
    const world = new PeerWorld();
    const early = world.peer.connect(PLACE, never);
    world.clock.advance(JOINED_MS - 1);
    const joined = world.peer.connect(PLACE, never);
    world.clock.advance(1);
    const late = world.peer.connect(PLACE, never);
    assert.equal(world.dials.length, 2);
    arrive(world, 1);
    assert.equal(new Set(await Promise.all([early, joined, late])).size, 1);
  });

  test('an attempt is aborted with its last caller, and later callers do not join it', async () => {
    const world = new PeerWorld();
    const callers = [new AbortController(), new AbortController()];
    const left = callers.map(({ signal }) => assert.rejects(world.peer.connect(PLACE, signal), withCode('cancelled')));
    callers[0]?.abort();
    await left[0];
    assert.equal(world.dials[0]?.signal.aborted, false);
    callers[1]?.abort();
    await left[1];
    assert.equal(world.dials[0]?.signal.aborted, true);
    const next = world.peer.connect(PLACE, never);
    assert.equal(world.dials.length, 2);
    arrive(world, 1);
    await next;
  });

  test('an inbound connection serves the waiting callers, and a caller after its end dials again', async () => {
    const world = new PeerWorld();
    const waiting = world.peer.connect(PLACE, never);
    const { session } = world.add(false);
    assert.equal(await waiting, session);
    session.close();
    await settle();
    const again = world.peer.connect(PLACE, never);
    assert.equal(world.dials.length, 2, 'the first attempt is still running');
    world.clock.advance(NODE_DIAL_TIMEOUT_MS / 2);
    arrive(world, 1);
    assert.notEqual(await again, session);
  });

  test('a node that does not answer within the timeout is unreachable, and the next caller dials again', async () => {
    const world = new PeerWorld();
    const outcome = assert.rejects(world.peer.connect(PLACE, never), withCode('connect_failed'));
    world.clock.advance(NODE_DIAL_TIMEOUT_MS);
    await outcome;
    assert.deepEqual([world.clock.timers, world.peer.isAtRest], [0, true]);
    void world.peer.connect(PLACE, never).catch(() => {});
    assert.equal(world.dials.length, 2);
    world.peer.stop();
  });

  test('after a stop nothing runs and nothing starts', async () => {
    const world = new PeerWorld();
    const { session } = world.add(true);
    session.drain();
    const outcome = assert.rejects(world.peer.connect(PLACE, never), withCode('cancelled'));
    world.peer.stop();
    await outcome;
    await assert.rejects(world.peer.connect(PLACE, never), withCode('cancelled'));
    await settle();
    assert.deepEqual([world.dials.length, world.clock.timers, session.closed], [1, 0, true]);
    assert.equal(world.add(false).isClosed(), true);
  });

  test('relays that are disabled during a dial or its hello carry nothing', async () => {
    const world = new PeerWorld();
    const relayed = Promise.withResolvers<Connection>();
    world.dialers.push(dialer('relay', 0, () => relayed.promise));
    const outcome = assert.rejects(world.peer.connect(PLACE, never), withCode('relay_required'));
    world.clock.advance(0);
    world.mayRelay = false;
    world.peer.closeRelayed();
    const dialed = arrival(world.clock, 'relay');
    relayed.resolve(dialed.session.connection);
    await outcome;
    assert.equal(dialed.isClosed(), true);
    assert.equal(world.add(false, 'relay').isClosed(), true);
    await settle();
    assert.deepEqual([world.peer.isAtRest, world.clock.timers], [true, 0]);
  });

  test('a caller without relays has its own attempt, and a relayed connection does not serve it', async () => {
    const world = new PeerWorld();
    world.dialers.push(dialer('relay', 100, () => new Promise(() => {})));
    const [any, direct] = [world.peer.connect(PLACE, never), world.peer.connect(PLACE, never, { relays: false })];
    assert.equal(world.dials.length, 2);
    const relayed = world.add(false, 'relay').session;
    assert.equal(await any, relayed);
    assert.deepEqual([world.peer.current(), world.peer.current(false)], [relayed, null]);
    arrive(world, 1);
    const session = await direct;
    assert.equal(session.connection.path.kind, 'direct');
    assert.equal(world.peer.current(), session, 'the connection without a relay is current');
  });

  test('if only a relay could reach the node and relays are not allowed, the error is `relay_required`', async () => {
    const relay = (leads: boolean) => dialer('relay', 0, () => assert.fail('must not be used'), leads);
    for (const [dialers, code] of [
      [[relay(true)], 'relay_required'],
      [[relay(false)], 'connect_failed'],
      [[], 'connect_failed'],
    ] as const) {
      const world = new PeerWorld();
      world.dialers.push(...dialers);
      const outcome = assert.rejects(world.peer.connect(PLACE, never, { relays: false }), withCode(code));
      world.clock.advance(NODE_DIAL_TIMEOUT_MS);
      await outcome;
    }
    const world = new PeerWorld();
    const fallen = arrival(world.clock, 'turn');
    world.dialers.push(dialer('punched', 100, async () => fallen.session.connection));
    const outcome = assert.rejects(world.peer.connect(PLACE, never, { relays: false }), withCode('relay_required'));
    world.clock.advance(100);
    await outcome;
    assert.equal(fallen.isClosed(), true, 'a dialer of another kind that fell back to a relay');
  });

  test('if the helpers report that a node is absent, this error takes precedence over all others', async () => {
    const world = new PeerWorld();
    world.dialers.push(
      dialer('punched', 0, () => Promise.reject(new NodeAbsent())),
      dialer('relay', 0, () => assert.fail('must not be used')),
    );
    const outcome = assert.rejects(world.peer.connect(PLACE, never, { relays: false }), NodeAbsent);
    world.clock.advance(NODE_DIAL_TIMEOUT_MS);
    await outcome;
  });
});

describe('connections', () => {
  test('the newer of two connections is current, unless both nodes dialed simultaneously', () => {
    for (const [key, ours] of [
      ['smaller', true],
      ['larger', false],
    ] as const) {
      const world = new PeerWorld(key);
      const chosen = world.add(ours).session;
      world.clock.advance(SIMULTANEOUS_MS);
      world.add(!ours);
      assert.equal(world.peer.current(), chosen, 'the connection dialed by the smaller key');
      world.clock.advance(1);
      const later = world.add(!ours).session;
      assert.equal(world.peer.current(), later, 'too late to count as simultaneous');
      const again = world.add(!ours).session;
      assert.equal(world.peer.current(), again, 'dialed by the same node again');
      assert.deepEqual([world.peer.isCurrent(again), world.peer.isCurrent(chosen)], [true, false]);
    }
  });

  test('above the limit the oldest spare connections close, and the current one never does', () => {
    const world = new PeerWorld();
    const first = world.add(true);
    // The dials are simultaneous, so the outbound connection stays current.
    const rest = Array.from({ length: MAX_PER_NODE }, () => world.add(false));
    assert.equal(world.peer.current(), first.session);
    assert.deepEqual(
      rest.map(({ isClosed }) => isClosed()),
      [true, false, false, false],
    );
    assert.equal(first.isClosed(), false);
    assert.equal([...world.peer.sessions].length, MAX_PER_NODE);
  });

  test('when the current connection closes, the newest usable one replaces it', async () => {
    const world = new PeerWorld();
    const [one, two, three, four] = [world.add(true), world.add(true), world.add(true), world.add(true)];
    three.session.drain();
    for (const [closed, current] of [
      [four, two],
      [one, two],
      [two, null],
      [three, null],
    ] as const) {
      closed.session.close();
      await settle();
      assert.equal(world.peer.current(), current?.session ?? null);
    }
    assert.deepEqual([...world.peer.sessions], []);
    assert.equal(world.ended.length, 4);
    assert.equal(world.peer.isAtRest, true);
  });

  test('a closed connection is never current, even before its end was processed', () => {
    const world = new PeerWorld();
    world.add(true).session.close();
    assert.equal(world.peer.current(), null);
  });

  test('after a reset there is no current connection until a new one opens, and open streams continue', () => {
    const world = new PeerWorld();
    const [old, spare] = [world.add(true), world.add(true)];
    world.peer.reset();
    assert.equal(world.peer.current(), null);
    assert.deepEqual([old.session.draining, spare.session.draining, old.isClosed()], [true, true, false]);
    const fresh = world.add(false);
    assert.equal(world.peer.current(), fresh.session);
    assert.deepEqual(
      world.pathChanges.map(({ before, path }) => [before?.kind, path?.kind]),
      [
        [undefined, 'direct'],
        ['direct', undefined],
        [undefined, 'direct'],
      ],
    );
  });

  test('an idle connection closes late, a spare one soon, and one that is kept or has streams does not close', async () => {
    const world = new PeerWorld();
    const [spare, current] = [world.add(true).session, world.add(true).session];
    const release = world.peer.keep();
    const looksFor = async (ms: number): Promise<void> => {
      world.clock.advance(ms);
      world.peer.look();
      await settle();
    };
    await looksFor(SPARE_IDLE_MS - 1);
    assert.equal(spare.closed, false);
    await looksFor(1);
    assert.deepEqual([spare.closed, current.closed], [true, false]);
    await looksFor(2 * IDLE_MS);
    assert.equal(current.closed, false, 'it is kept');
    release();
    release();
    await looksFor(0);
    assert.equal(current.closed, true);
    assert.equal(world.peer.isAtRest, true);
  });

  test('new streams use a better path, and a worse one is closed', async () => {
    const world = new PeerWorld();
    const relayed = world.add(true, 'relay').session;
    const punched = arrival(world.clock, 'punched');
    const better = await world.peer.upgrade(punched.session.connection);
    assert.equal(better.connection, punched.session.connection);
    assert.deepEqual([world.peer.current(), relayed.closed], [better, false]);
    const worse = arrival(world.clock, 'turn');
    assert.equal(await world.peer.upgrade(worse.session.connection), better);
    assert.equal(worse.isClosed(), true);
  });
});

const ROUNDS = { firstMs: 1_000, soon: 3, periodMs: 20_000, laterMs: 600_000 };

/** A peer reached through a relay, and a dialer that is retried while the relay carries the connection. */
function improvable() {
  const world = new PeerWorld();
  const { clock } = world;
  const punches: { readonly arrive: (connection: Connection) => void; readonly fail: () => void }[] = [];
  const plans: boolean[] = [];
  world.dialers.push(
    {
      ...dialer('punched', 0, () => {
        const { promise, resolve, reject } = Promise.withResolvers<Connection>();
        punches.push({ arrive: resolve, fail: () => reject(new SvcError('connect_failed')) });
        return promise;
      }),
      timeoutMs: 10_000,
      rounds: (_place, isUnderWay) => {
        plans.push(isUnderWay);
        return ROUNDS;
      },
    },
    dialer('relay', 0, async () => arrival(clock, 'relay').session.connection),
  );
  /** Lets the relay win the race. */
  const connect = async (): Promise<NodeSession> => {
    const connecting = world.peer.connect(PLACE, never);
    await clock.run(0);
    return await connecting;
  };
  /** Like `connect`, but all dials of the other dialer have failed. */
  const relayed = async (): Promise<NodeSession> => {
    const session = await connect();
    for (const { fail } of punches) fail();
    await settle();
    return session;
  };
  return { world, clock, punches, plans, connect, relayed };
}

describe('better paths than a relay', () => {
  test('if a dialer succeeds after the relay, new streams use its connection', async () => {
    const { world, clock, punches, plans, connect } = improvable();
    await connect();
    assert.deepEqual([world.peer.current()?.connection.path.kind, punches.length, plans], ['relay', 1, [true]]);
    const { session, isClosed } = arrival(clock, 'punched');
    punches[0]?.arrive(session.connection);
    await settle();
    assert.equal(world.peer.current()?.connection, session.connection);
    assert.equal(isClosed(), false);
    world.peer.stop();
  });

  test('a late connection is closed if a direct one is open', async () => {
    const { world, clock, punches, connect } = improvable();
    await connect();
    world.add(true);
    const { session, isClosed } = arrival(clock, 'punched');
    punches[0]?.arrive(session.connection);
    await settle();
    assert.equal(isClosed(), true);
    world.peer.stop();
  });

  test('the dialer is retried a few times soon, then rarely, and soon again after a change, until the relay closes', async () => {
    const { world, clock, punches, relayed } = improvable();
    const session = await relayed();
    const retries = async (ms: number): Promise<number> => {
      const before = punches.length;
      for (let passed = 0; passed < ms; passed += 1_000) {
        await clock.run(1_000);
        for (const { fail } of punches) fail();
      }
      return punches.length - before;
    };
    assert.equal(await retries(10 * ROUNDS.periodMs), ROUNDS.soon);
    assert.equal(await retries(ROUNDS.laterMs), 1);
    world.peer.improveSoon();
    world.peer.improveSoon();
    assert.equal(await retries(2 * ROUNDS.periodMs), 1);
    session.close();
    await settle();
    assert.deepEqual([clock.timers, world.context.improved, world.peer.isAtRest], [0, 0, true]);
  });

  test('each new connection through the relay restarts the retries', async () => {
    const { clock, punches, relayed, world } = improvable();
    const first = await relayed();
    await clock.run(ROUNDS.firstMs);
    assert.equal(punches.length, 2);
    first.drain();
    await relayed();
    await clock.run(ROUNDS.firstMs);
    assert.equal(punches.length, 4, 'a race and a retry each');
    assert.equal(world.context.improved, 1);
    world.peer.stop();
  });

  test('a retry that does not finish does not delay the next one, and its late connection is closed', async () => {
    const { world, clock, punches, relayed } = improvable();
    await relayed();
    await clock.run(ROUNDS.firstMs);
    const round = punches.at(-1);
    await clock.run(10_000 + ROUNDS.periodMs);
    assert.equal(punches.length, 3);
    const { session, isClosed } = arrival(clock, 'punched');
    round?.arrive(session.connection);
    await settle();
    assert.equal(isClosed(), true);
    world.peer.stop();
  });

  test('few nodes are retried concurrently, and none after a stop', async () => {
    const { world, clock, punches, relayed } = improvable();
    world.context.improved = MAX_IMPROVED;
    await relayed();
    await clock.run(10 * ROUNDS.periodMs);
    assert.equal(punches.length, 1);
    world.context.improved = 0;
    world.peer.reset();
    await relayed();
    assert.equal(world.context.improved, 1);
    world.peer.stop();
    await settle();
    assert.deepEqual([world.context.improved, clock.timers], [0, 0]);
  });
});

/** A kept connection that receives nothing, and its checks. */
function broken(world: PeerWorld) {
  const { session } = world.add(true);
  const release = world.peer.keep();
  let sent = 0;
  Object.assign(session.connection, {
    stats: () => ({ bytesSent: sent, bytesReceived: 1, packetsSent: 0, packetsLost: 0 }),
  });
  const look = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += LOOK_MS) {
      sent += 100;
      world.clock.advance(LOOK_MS);
      world.peer.look();
      await settle();
    }
  };
  return { session, look, release };
}

describe('dead paths and relocation', () => {
  test('a dead path is reported, and the node is dialed again at its last endpoint', async () => {
    const world = new PeerWorld();
    const first = world.peer.connect(PLACE, never);
    arrive(world, 0);
    (await first).close();
    await settle();
    const { look } = broken(world);
    await look(UNANSWERED_MS + 3 * LOOK_MS);
    assert.deepEqual([world.deadPaths, world.dials.length], [1, 2]);
    await look(UNANSWERED_MS + 3 * LOOK_MS);
    assert.equal(world.dials.length, 2, 'one search for a replacement at a time');
    world.peer.stop();
  });

  test('after a network change the search for a replacement starts again', async () => {
    const world = new PeerWorld();
    let lookups = 0;
    world.locate = (_key, signal) => {
      lookups++;
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const { session, look } = broken(world);
    await look(UNANSWERED_MS + 3 * LOOK_MS);
    assert.equal(lookups, 1);
    world.peer.onNetwork();
    await look(UNANSWERED_MS + 8 * LOOK_MS);
    assert.deepEqual([lookups, session.closed], [2, false]);
    world.peer.stop();
  });

  test('a node whose connection closes while its place is looked up is not at rest: another object would replace it', async () => {
    const world = new PeerWorld();
    const found = Promise.withResolvers<NodePlace>();
    world.locate = () => found.promise;
    const rests: boolean[] = [];
    world.context.onActivity = ({ isAtRest }) => void rests.push(isAtRest);
    const { session, look, release } = broken(world);
    await look(UNANSWERED_MS + 3 * LOOK_MS);
    session.close();
    release();
    await settle();
    assert.equal(world.peer.isAtRest, false);
    found.resolve(PLACE);
    await settle();
    assert.deepEqual([world.dials.length, world.peer.isAtRest], [1, false]);
    world.dials[0]?.fail(new SvcError('connect_failed'));
    await settle();
    assert.deepEqual([world.peer.isAtRest, rests.at(-1)], [true, true]);
    assert.equal(rests.slice(0, -1).includes(true), false);
  });

  test('a node is not at rest while a dial may still replace its relay', async () => {
    const world = new PeerWorld();
    const late = Promise.withResolvers<Connection>();
    const rounds = () => ({ firstMs: 1000, soon: 1, periodMs: 1000, laterMs: 1000 });
    world.dialers.push({ ...dialer('punched', 0, () => late.promise), rounds });
    const caller = new AbortController();
    const outcome = assert.rejects(world.peer.connect(PLACE, caller.signal), withCode('cancelled'));
    world.clock.advance(0);
    caller.abort();
    await outcome;
    await settle();
    assert.equal(world.peer.isAtRest, false);
    late.reject(new SvcError('connect_failed'));
    await settle();
    assert.deepEqual([world.peer.isAtRest, world.clock.timers], [true, 0]);
  });

  test('during a long dial the node is looked up until it is reached, and dialed at the endpoint found', async () => {
    const world = new PeerWorld();
    let [place, lookups]: [NodePlace, number] = [PLACE, 0];
    world.locate = async () => {
      lookups++;
      return place;
    };
    const callers = [new AbortController(), new AbortController()];
    const waiting = callers.map(({ signal }) => world.peer.connect(PLACE, signal));
    const outcomes = Promise.allSettled(waiting);
    await world.clock.run(LOOK_ELSEWHERE_MS - 1);
    assert.equal(lookups, 0);
    await world.clock.run(LOOK_ELSEWHERE_MS);
    assert.deepEqual([lookups, world.dials.length], [1, 1], 'one lookup for all callers, and no new endpoint');
    place = placeAt(1);
    callers[0]?.abort();
    await world.clock.run(LOOK_ELSEWHERE_MS);
    assert.deepEqual(
      world.dials.map(({ port }) => port),
      [4122, 1],
    );
    await world.clock.run(LOOK_ELSEWHERE_MS);
    assert.equal(world.dials.length, 2, 'an endpoint is dialed once');
    arrive(world, 1);
    assert.deepEqual(
      (await outcomes).map(({ status }) => status),
      ['rejected', 'fulfilled'],
    );
    const before = lookups;
    await world.clock.run(3 * LOOK_ELSEWHERE_MS);
    assert.equal(lookups, before);
  });

  test('a node with a dead connection is looked up immediately, and once for all links', async () => {
    const world = new PeerWorld();
    let lookups = 0;
    world.locate = async () => {
      lookups++;
      return placeAt(2);
    };
    const insteadOf: NodeSession = world.add(true).session;
    const waiting = [1, 2, 3].map(() => world.peer.connect(PLACE, never, { insteadOf }));
    await world.clock.run(0);
    assert.deepEqual([lookups, world.dials.map(({ port }) => port)], [1, [4122, 2]]);
    arrive(world, 1);
    const [session] = await Promise.all(waiting);
    assert.equal(world.peer.current(), session);
    assert.equal(insteadOf.draining, true);
  });

  test('if many nodes seem unreachable, few are looked up concurrently', async () => {
    const world = new PeerWorld();
    const asked: number[] = [];
    const held = Promise.withResolvers<null>();
    world.locate = ([node = 0]) => {
      asked.push(node);
      return held.promise;
    };
    const nodes = Array.from({ length: 2 * MAX_LOOKED_FOR }, (_, i) => new Uint8Array(32).fill(i + 1));
    const peers = nodes.map((nodeKey) => new Peer(nodeKey, world.context));
    const outcomes = Promise.allSettled(peers.map((peer) => peer.connect({ ...PLACE, nodeKey: peer.nodeKey }, never)));
    await world.clock.run(2 * LOOK_ELSEWHERE_MS);
    assert.equal(asked.length, MAX_LOOKED_FOR);
    held.resolve(null);
    await world.clock.run(LOOK_ELSEWHERE_MS);
    assert.equal(new Set(asked).size, nodes.length, 'all nodes are looked up');
    for (const peer of peers) peer.stop();
    await outcomes;
  });
});
