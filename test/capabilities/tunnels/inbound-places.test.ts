import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type InboundPlace,
  InboundPlaces,
  MAX_CONNECTIONS_PER_CALLER,
  STRANGER_STILL_MS,
} from '../../../src/capabilities/tunnels/inbound-places.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { plainPath } from '../../../src/network/path.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALLED = newIdentity().aid;

interface Who {
  readonly aid: Aid;
  readonly node: number | null;
  readonly host: string;
}

let nodes = 0;

function stranger(host: string, node: number | null = ++nodes): Who {
  return { aid: newIdentity().aid, node, host };
}

class World {
  readonly clock = new TestClock();
  readonly named = new Set<Aid>();
  readonly cut: Who[] = [];
  readonly places: InboundPlaces;

  constructor(maxConnections: number) {
    this.places = new InboundPlaces({
      clock: this.clock,
      maxConnections: () => maxConnections,
      isNamed: ({ caller }) => this.named.has(caller),
    });
  }

  take(who: Who): InboundPlace | null {
    const { aid, node, host } = who;
    const link = {
      caller: aid,
      called: CALLED,
      nodeKey: node === null ? null : Uint8Array.of(node),
      path: () => ({ ...plainPath('direct', { host, port: 1 }), rttMs: 0 }),
    };
    return this.places.take(link, () => this.cut.push(who));
  }

  /** How many places somebody gets until there are no more. */
  fill(who: Who): number {
    let count = 0;
    while (this.take(who) !== null) count++;
    return count;
  }
}

test('a node gets half of the places, a network three quarters, all together all of them', () => {
  const world = new World(100);
  const host = '192.0.2.1';
  assert.equal(world.fill(stranger(host)), 50);
  assert.equal(world.fill(stranger(host)), 25);
  assert.equal(world.fill(stranger(host)), 0);
  assert.equal(world.fill(stranger('192.0.2.2')), 25);
  assert.equal(world.fill(stranger('192.0.2.3')), 0);
  assert.deepEqual(world.cut, []);
});

test('one caller has so many to one agent at most', () => {
  const world = new World(Number.POSITIVE_INFINITY);
  assert.equal(world.fill(stranger('192.0.2.1')), MAX_CONNECTIONS_PER_CALLER);
});

test('a place that is given back is free again, however often', () => {
  const world = new World(2);
  const [one, other] = [stranger('192.0.2.1'), stranger('192.0.2.2')];
  const place = world.take(one);
  assert.equal(world.fill(other), 1);
  place?.leave();
  place?.leave();
  assert.equal(world.fill(one), 1);
  assert.equal(world.fill(stranger('192.0.2.3')), 0);
});

test('the connection of a stranger that has been still for longest makes room, and only where it helps', () => {
  const world = new World(4);
  const [a, b, c] = [stranger('192.0.2.1'), stranger('192.0.2.2'), stranger('192.0.2.3')];
  const first = world.take(a);
  world.take(a);
  world.clock.advance(1000);
  world.take(b);
  world.take(b);
  world.clock.advance(STRANGER_STILL_MS - 1001);
  assert.equal(world.take(c), null, 'nobody has been still for long enough');
  first?.used();
  world.clock.advance(1);
  assert.equal(world.take(b), null, "the share of b's node is used up, and a's connections do not count against it");
  assert.deepEqual(world.cut, []);
  assert.ok(world.take(c) !== null);
  assert.deepEqual(world.cut, [a]);
  assert.equal(world.take(c), null, 'the other one of a was used');
  world.clock.advance(1000);
  assert.ok(world.take(b) !== null);
  assert.deepEqual(world.cut, [a, b], 'its own goes where its own share is used up');
});

test('strangers make room at once for whom the owner has let in by name, and those never for others', () => {
  const world = new World(4);
  const [a, friend, c] = [stranger('192.0.2.1'), stranger('192.0.2.2'), stranger('192.0.2.3')];
  world.named.add(friend.aid);
  world.fill(a);
  world.fill(stranger('192.0.2.4'));
  assert.equal(world.fill(friend), 2);
  assert.equal(world.cut.length, 2);
  world.clock.advance(2 * STRANGER_STILL_MS);
  assert.equal(world.fill(c), 2);
  assert.ok(!world.cut.includes(friend));
});

test('agents of this daemon are no strangers, and no network is counted against them', () => {
  const world = new World(4);
  assert.equal(world.fill(stranger('127.0.0.1', null)), 2);
  world.clock.advance(2 * STRANGER_STILL_MS);
  assert.equal(world.fill(stranger('192.0.2.1')), 2);
  assert.equal(world.fill(stranger('192.0.2.2')), 0);
  assert.deepEqual(world.cut, []);
});
